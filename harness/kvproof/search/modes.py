"""Modes: what a base scope leaves off, each as a variant of that scope, alone and in pairs."""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

from kvmodel.contract import ADMISSIONS, DEADLINES, DEPTHS, OUTPUT_FROM, REPORTS, STORE_MODES, Contract
from kvmodel.errors import BadScope
from kvmodel.machine import Machine
from kvmodel.scope import Scope
from kvmodel.tiers import TIERS


class Variant(NamedTuple):
    """A scope and a contract under a name that tells what is on, such as `s1+lookups+survivors`."""

    name: str
    scope: Scope
    contract: Contract


Change = Callable[[Variant], Variant]


def _contract(change: Callable[[Contract], Contract]) -> Change:
    return lambda variant: variant._replace(contract=change(variant.contract))


def _scope(change: Callable[[Scope], Scope]) -> Change:
    return lambda variant: variant._replace(scope=change(variant.scope))


def _pressed(scope: Scope) -> Scope:
    """Two requests that each fit and together do not, once they decode; in s1 and s2 one of them fits beside a block of
    the other.

    Pressure preempts them; the client neither preempts nor aborts.
    """
    return scope._replace(
        prompts=("a", "b"), decode=1, device_blocks=scope.device_blocks + 1, preempts=False, aborts=False
    )


def _deep(variant: Variant) -> Variant:
    """Asynchronous scheduling of requests of two blocks, so that one can be in two launched steps at once: the second
    block is decoded while the first one is computed, and the output of the first may end the request."""
    scope = variant.scope
    prompts = tuple([prompt[0] for prompt in scope.prompts])
    return variant._replace(
        contract=variant.contract._replace(depth=2),
        scope=scope._replace(prompts=prompts, decode=max(1, scope.decode), stops=True),
    )


def _partly_failing(scope: Scope) -> Scope:
    """Jobs of two blocks on two workers, so that one may fail in another block than the other, or not at all."""
    return scope._replace(host_blocks=2, workers=2, partial_failures=2, aborts=False, resets=0)


def _partial(variant: Variant) -> Variant:
    """Two requests of which each fits into the device, and half of each fits beside half of the other.

    Both can load at once. Pressure preempts them; the client neither preempts, aborts nor resets.
    """
    scope = variant.scope
    sizes = scope._replace(device_blocks=2 + scope.decode, host_blocks=max(scope.host_blocks, 2), resets=0)
    return variant._replace(
        scope=sizes._replace(prompts=("ab", "ac"), preempts=False, aborts=False),
        contract=variant.contract._replace(admission="partial"),
    )


def _tiered(scope: Scope) -> Scope:
    """Resets of one tier, which can only mean `evict`, while lookups pin what they found, with survivors and without;
    where `evict` is on, of all tiers too."""
    scope = scope._replace(survivors=True, lookups=True)
    if "evict" in scope.meanings:
        return scope._replace(tiers=TIERS)
    return scope._replace(tiers=("device", "host"), meanings=("evict",))


def _marked(variant: Variant) -> Variant:
    """Room for two stores at once, so that one mark covers several; marks that come again and marks that are lost."""
    host = variant.scope.host_blocks + 1
    scope = variant.scope._replace(prompts=("a",), host_blocks=host, aborts=False, duplicates=1, losses=1)
    return variant._replace(contract=variant.contract._replace(reports="marks"), scope=scope)


def _repeating(scope: Scope) -> Scope:
    """Two requests that evict each other, each with one key at both positions, which one block can serve."""
    sizes = scope._replace(device_blocks=2 + scope.decode, host_blocks=max(scope.host_blocks, 2), resets=0)
    return sizes._replace(prompts=("aa", "bb"), repeats=True, aborts=False)


def _windowed(scope: Scope) -> Scope:
    """A request that decodes two blocks and reads one back, so that what it leaves may not be stored yet, or is just
    being stored, and is taken again by itself, further on."""
    sizes = scope._replace(device_blocks=3, host_blocks=1, resets=0, aborts=False, preempts=False)
    return sizes._replace(decode=2, window=1)


def _cascading(scope: Scope) -> Scope:
    """A second tier for one request of two blocks of which the host holds one: the first goes on to the second tier
    before the other takes its place. It comes back after a reset of the device, and may meet one of the host."""
    sizes = scope._replace(prompts=("ab",), device_blocks=2 + scope.decode, host_blocks=1, second_blocks=1)
    return sizes._replace(resets=2, tiers=("device", "host"), meanings=("evict",), aborts=False, preempts=False)


def _expiring(variant: Variant) -> Variant:
    """A deadline that passes early once, and once because a report is lost."""
    prompts = tuple([prompt[0] for prompt in variant.scope.prompts])
    sizes = variant.scope._replace(device_blocks=1 + variant.scope.decode, prompts=prompts)
    scope = sizes._replace(losses=1, expiries=1, aborts=False)
    return variant._replace(contract=variant.contract._replace(deadline="expire"), scope=scope)


def _declared(variant: Variant) -> Variant:
    """A worker that dies, and that the deadline declares dead."""
    scope = variant.scope._replace(deaths=1, aborts=False, preempts=False)
    return variant._replace(contract=variant.contract._replace(deadline="expire"), scope=scope)


MODES: Mapping[str, Change] = {
    "lazy": _contract(lambda contract: contract._replace(store_mode="lazy")),
    "first": _contract(lambda contract: contract._replace(output_from="first")),
    "depth": _deep,
    "marks": _marked,
    "lookups": _scope(lambda scope: scope._replace(lookups=True)),
    "decode": _scope(lambda scope: scope._replace(decode=1, device_blocks=scope.device_blocks + 1)),
    "pressure": _scope(_pressed),
    "partial": _partial,
    "repeats": _scope(_repeating),
    "window": _scope(_windowed),
    "evict": _scope(lambda scope: scope._replace(meanings=("invalidate", "evict"))),
    "survivors": _scope(lambda scope: scope._replace(survivors=True)),
    "tiers": _scope(_tiered),
    "second": _scope(_cascading),
    "resets": _scope(lambda scope: scope._replace(resets=2)),
    "duplicates": _scope(lambda scope: scope._replace(duplicates=1)),
    "losses": _scope(lambda scope: scope._replace(losses=1)),
    "expiry": _expiring,
    "deaths": _scope(lambda scope: scope._replace(deaths=1, aborts=False, preempts=False)),
    "declared": _declared,
    "forgeries": _scope(lambda scope: scope._replace(forgeries=1)),
    "failures": _scope(lambda scope: scope._replace(failures=1, aborts=False)),
    "partial-failures": _scope(_partly_failing),
    "double-frees": _scope(lambda scope: scope._replace(double_frees=1)),
}
"""Name -> how it changes a variant. Each is off in the base scopes s1 to s4."""

SWITCHES: Mapping[str, Callable[[Contract, Scope], bool]] = {
    "lazy": lambda contract, scope: contract.lazy,
    "first": lambda contract, scope: contract.output_from == "first",
    "depth": lambda contract, scope: contract.depth > 1,
    "marks": lambda contract, scope: contract.marks,
    "lookups": lambda contract, scope: scope.lookups,
    "decode": lambda contract, scope: scope.decode > 0,
    "pressure": lambda contract, scope: (scope.decode > 0 or contract.partial) and _is_short(scope),
    "partial": lambda contract, scope: contract.partial,
    "repeats": lambda contract, scope: scope.repeats,
    "window": lambda contract, scope: scope.window > 0,
    "evict": lambda contract, scope: "evict" in scope.meanings and scope.resets > 0,
    "survivors": lambda contract, scope: scope.survivors and scope.resets > 0,
    "tiers": lambda contract, scope: scope.tiers != ("all",) and scope.resets > 0,
    "resets": lambda contract, scope: scope.resets > 1,
    "duplicates": lambda contract, scope: scope.duplicates > 0,
    "losses": lambda contract, scope: scope.losses > 0,
    "expiry": lambda contract, scope: contract.expires,
    "forgeries": lambda contract, scope: scope.forgeries > 0,
    "failures": lambda contract, scope: scope.failures > 0,
    "partial-failures": lambda contract, scope: scope.partial_failures > 0,
    "double-frees": lambda contract, scope: scope.double_frees > 0,
    "second": lambda contract, scope: scope.second_blocks > 0,
    "deaths": lambda contract, scope: scope.deaths > 0,
    "declared": lambda contract, scope: scope.deaths > 0 and contract.expires,
}
"""Name -> whether the mode is on, however that came about."""


def _is_short(scope: Scope) -> bool:
    """Is there too little room for all requests at once, once they have grown?"""
    wanted = sum(len(prompt) + scope.decode for prompt in scope.prompts)
    return len(scope.prompts) > 1 and wanted > scope.device_blocks


def switched_on(contract: Contract, scope: Scope) -> tuple[str, ...]:
    """The modes that are on, in the order of MODES."""
    return tuple(name for name in MODES if SWITCHES[name](contract, scope))


PAIRED_WITH_ALL = (
    "lazy", "first", "lookups", "decode", "pressure", "evict", "survivors", "resets", "duplicates", "losses",
    "forgeries", "double-frees",
)  # fmt: skip
"""Modes every two of which are taken together."""

LISTED = (
    ("depth", "lazy"),
    ("depth", "first"),
    ("depth", "pressure"),
    ("depth", "survivors"),
    ("depth", "duplicates"),
    ("depth", "failures"),
    ("failures", "lookups"),
    ("failures", "survivors"),
    ("failures", "duplicates"),
    ("failures", "losses"),
    ("failures", "lazy"),
    ("lookups", "second"),
    ("losses", "second"),
    ("failures", "second"),
    ("tiers", "resets"),
    ("tiers", "depth"),
    ("tiers", "failures"),
    ("partial", "lookups"),
    ("partial", "losses"),
    ("partial", "failures"),
    ("repeats", "lookups"),
    ("repeats", "failures"),
    ("repeats", "window"),
    ("window", "lookups"),
    ("window", "failures"),
    ("window", "resets"),
    ("deaths", "depth"),
    ("deaths", "decode"),
    ("deaths", "lookups"),
    ("deaths", "lazy"),
    ("deaths", "losses"),
    ("deaths", "failures"),
    ("deaths", "resets"),
    ("deaths", "tiers"),
    ("deaths", "second"),
    ("declared", "depth"),
)
"""Further pairs, of modes that change what each other does: not every pair of them, since their states are many."""

EXCLUSIVE = frozenset({frozenset({"decode", "pressure"})})
"""Pairs of which one contains the other."""


def paired() -> tuple[tuple[str, str], ...]:
    """Every two modes that are taken together. What becomes of the others, `kvproof list pairs` says."""
    chosen = [pair for pair in combinations(PAIRED_WITH_ALL, 2) if frozenset(pair) not in EXCLUSIVE]
    return (*chosen, *LISTED)


VAIN = ("duplicates", "forgeries", "double-frees")
"""Faults that change nothing, so that states that differ in how many of them are left are searched as one
(`kvproof.search.allowance`): beside another mode forgeries and double frees cost a few steps at each state, and no more
states. Duplicates cost some: a state of which a job has been retired, which may be reported again, is then another than
one of which none has (at s1 with nothing else 155 for 119 under pinning, 851 for 767 under fencing)."""


def together() -> tuple[tuple[str, ...], ...]:
    """Modes that are switched on together, so that between them they have every pair of `paired`: those that do not
    contain each other in pairs, and each that is paired with vain faults with all of those at once."""
    beside: dict[str, list[str]] = {}
    others: list[tuple[str, ...]] = []
    for one, other in paired():
        vain = [mode for mode in (one, other) if mode in VAIN]
        if not vain:
            others.append((one, other))
        elif len(vain) == 1:
            beside.setdefault(one if other == vain[0] else other, []).append(vain[0])
    return (*[(*faults, mode) for mode, faults in beside.items()], *others)


def turns(contract: Contract) -> list[Contract]:
    """The contracts whose modes take turns in runs that sample: eight of the 64 combinations, which have every pair of
    values of two modes; the first four have 54 of the 60 pairs."""
    return [
        contract._replace(
            store_mode=store,
            output_from=output,
            depth=DEPTHS[(first + second + flip) % 2],
            admission=ADMISSIONS[(second + flip) % 2],
            reports=REPORTS[(first + flip) % 2],
            deadline=DEADLINES[(first + second) % 2],
        )
        for flip in range(2)
        for first, store in enumerate(STORE_MODES)
        for second, output in enumerate(OUTPUT_FROM)
    ]


def turns_at(contract: Contract, scope: Scope) -> list[Contract]:
    """The turns that go with a scope. BadScope if the contract itself does not."""
    Machine(contract, scope)
    return [turn for turn in turns(contract) if goes_together(Variant("", scope, turn))]


def with_modes(name: str, scope: Scope, contract: Contract) -> Variant:
    """The variant of a contract, under a name that tells which of the contract's modes are on."""
    on = {
        "lazy": contract.lazy,
        "first": contract.output_from == "first",
        "depth": contract.depth == 2,
        "partial": contract.partial,
        "marks": contract.marks,
        "deadline": contract.expires,
    }
    return Variant("+".join((name, *(mode for mode, is_on in on.items() if is_on))), scope, contract)


def variants(name: str, scope: Scope, contract: Contract, pairs: bool) -> list[Variant]:
    """The base with each mode alone, or with modes in pairs and those alone that are in no pair with a vain fault;
    without those that do not go with the base's own modes."""
    base = Variant(name, scope, contract)
    return [variant for variant in _variants(base, pairs) if goes_together(variant)]


def _variants(base: Variant, pairs: bool) -> list[Variant]:
    if not pairs:
        return [varied(_lighter_alone(base, mode), (mode,)) for mode in MODES]
    contained = {mode for modes in together() if set(VAIN) & set(modes) for mode in modes}
    alone = [varied(_lighter_alone(base, mode), (mode,)) for mode in MODES if mode not in contained]
    return alone + [varied(_lighter(base, modes), modes) for modes in together()]


def goes_together(variant: Variant) -> bool:
    """Whether there is a machine of its modes at its sizes."""
    try:
        Machine(variant.contract, variant.scope)
    except BadScope:
        return False
    return True


def _has_many(base: Variant) -> bool:
    """Fencing with several workers, which has many times the states of the others."""
    return not base.contract.pins and base.scope.workers > 1


def _without_leaving(base: Variant) -> Variant:
    """No client preempts or aborts."""
    name = f"{base.name},preempts=no,aborts=no"
    return base._replace(name=name, scope=base.scope._replace(preempts=False, aborts=False))


def _without_resets(base: Variant) -> Variant:
    return base._replace(name=f"{base.name},resets=0", scope=base.scope._replace(resets=0))


def _lighter_alone(base: Variant, mode: str) -> Variant:
    """Under fencing two of the 24 modes have 43% of the states (of s1: 17,708 of 41,061): two resets are taken without
    client preemptions and aborts, pressure without resets. With one worker both are whole in their pairs with `evict`,
    with several pressure alone is: `_lighter` makes all pairs of two resets lighter there."""
    if base.contract.pins:
        return base
    if mode == "resets":
        return _without_leaving(base)
    return _without_resets(base) if mode == "pressure" else base


def _lighter(base: Variant, pair: tuple[str, ...]) -> Variant:
    """Under fencing with several workers the states of some pairs are too many for a night: those are taken without
    client preemptions and aborts where two resets are on, and without resets where pressure is on and the other mode
    is not about them; pressure with two resets is taken where one request fills the device. With one worker they are
    taken whole."""
    if not _has_many(base):
        return base
    if set(pair) == {"pressure", "resets"}:
        scope = base.scope._replace(device_blocks=base.scope.device_blocks - 1, preempts=False, aborts=False)
        return base._replace(name=f"{base.name},device={scope.device_blocks},preempts=no,aborts=no", scope=scope)
    if "resets" in pair:
        return _without_leaving(base)
    return _without_resets(base) if "pressure" in pair and not {"evict", "survivors"} & set(pair) else base


def varied(base: Variant, modes: tuple[str, ...]) -> Variant:
    """The base with these modes on."""
    for mode in modes:
        base = MODES[mode](base)
    return base._replace(name="+".join((base.name, *modes)))
