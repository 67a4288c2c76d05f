"""Modes and listed pairs of modes with few commands beside their own, so that `check` can take them all."""

from collections.abc import Callable, Mapping, Sequence

from kvmodel.scope import Scope
from kvproof.search.modes import LISTED, MODES, Variant, goes_together, variants, varied

ABOUT_RESETS = frozenset({"evict", "survivors", "tiers", "second", "resets"})
"""Modes that nothing is seen of without a reset."""

FAULTS = ("duplicates", "losses", "failures", "deaths")
"""Fields of a scope that let something happen so many times, and change nothing where it does not."""


def _alone(scope: Scope) -> Scope:
    """One request, which loads what it has lost to a reset of the device, in place of two that take turns."""
    return scope._replace(prompts=scope.prompts[:1], resets=1, tiers=("device",), meanings=("evict",))


SLIGHTER: Mapping[tuple[str, ...], Callable[[Scope], Scope]] = {
    ("partial",): _alone,
    ("pressure",): lambda scope: scope._replace(device_blocks=scope.device_blocks - 1),
    ("second",): lambda scope: scope._replace(tiers=("device",)),
    ("window", "resets"): lambda scope: scope._replace(decode=1),
    ("repeats", "window"): lambda scope: scope._replace(decode=1),
    ("deaths", "resets"): lambda scope: scope._replace(prompts=tuple([prompt[0] for prompt in scope.prompts])),
}
"""Modes that are on -> what is less then, of that which has most of the states. `conform modes` has it whole at s1."""


def narrowed(base: Variant, modes: tuple[str, ...]) -> Variant:
    """Modes at the sizes of the base, with few commands beside their own: no client preempts or aborts, and a reset
    comes where a mode is about resets, then once, or twice where that is the mode. What SLIGHTER names is less."""
    scope = base.scope._replace(preempts=False, aborts=False)
    words = "preempts=no,aborts=no"
    if not ABOUT_RESETS & {*modes}:
        scope, words = scope._replace(resets=0), f"{words},resets=0"
    variant = varied(base._replace(name=f"{base.name},{words}", scope=scope), modes)
    scope = variant.scope
    if "resets" not in modes:
        scope = scope._replace(resets=min(scope.resets, 1))
    for on, slighter in SLIGHTER.items():
        scope = slighter(scope) if {*on} <= {*modes} else scope
    return variant._replace(scope=scope)


def contains(more: Variant, less: Variant) -> bool:
    """Whether two variants differ in nothing but that the first has more faults: then it has every state of the second,
    where none of them has occurred, and every step from there."""
    faults = {field: getattr(more.scope, field) for field in FAULTS}
    fewer = all(times >= getattr(less.scope, field) for field, times in faults.items())
    return more.contract == less.contract and fewer and less.scope._replace(**faults) == more.scope


def listed(base: Variant) -> list[Variant]:
    """Each listed pair, narrowed."""
    return [variant for pair in LISTED if goes_together(variant := narrowed(base, pair))]


def uncontained(base: Variant) -> list[Variant]:
    """Each mode, narrowed, that is not contained in a listed pair."""
    pairs = listed(base)
    alone = [variant for mode in MODES if goes_together(variant := narrowed(base, (mode,)))]
    return [variant for variant in alone if not any(contains(pair, variant) for pair in pairs)]


NARROW: Mapping[str, Callable[[Variant], Sequence[Variant]]] = {"listed": listed, "larger": uncontained}


def variants_of(base: Variant, wanted: object) -> list[Variant]:
    """The variants that a job is about. wanted: its option `modes`; None: it has none, and is about the base.

    `alone`, `pairs`  as `kvproof.search.modes.variants`
    `listed`          each listed pair, narrowed
    `larger`          each mode that is in none of those, narrowed
    """
    if wanted is None:
        return [base]
    assert isinstance(wanted, str)
    return [*NARROW[wanted](base)] if wanted in NARROW else variants(*base, pairs=wanted == "pairs")
