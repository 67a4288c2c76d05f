"""Modes: what a base scope leaves off, each as a variant of that scope, alone and in pairs."""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

from kvmodel.contract import Contract
from kvmodel.scope import Scope


class Variant(NamedTuple):
    """A scope and a contract under a name that tells what is on, such as `s1+lookups+survivors`."""

    name: str
    scope: Scope
    contract: Contract


Change = Callable[[Variant], Variant]


def _scope(**fields: object) -> Change:
    return lambda variant: variant._replace(scope=variant.scope._replace(**fields))


def _contract(**fields: object) -> Change:
    return lambda variant: variant._replace(contract=variant.contract._replace(**fields))


def _decode(variant: Variant) -> Variant:
    scope = variant.scope
    return variant._replace(scope=scope._replace(decode=1, device_blocks=scope.device_blocks + 1))


def _pressure(variant: Variant) -> Variant:
    """Two requests that each fit and together do not, once they decode. (Pressure preempts; the client neither does nor aborts.)"""
    scope = variant.scope._replace(prompts=("a", "b"), decode=1, device_blocks=3, preempts=False, aborts=False)
    return variant._replace(scope=scope)


MODES: Mapping[str, Change] = {
    "lazy": _contract(store_mode="lazy"),
    "first": _contract(output_from="first"),
    "lookups": _scope(lookups=True),
    "decode": _decode,
    "pressure": _pressure,
    "evict": _scope(meanings=("invalidate", "evict")),
    "survivors": _scope(survivors=True),
    "resets": _scope(resets=2),
    "duplicates": _scope(duplicates=1),
    "losses": _scope(losses=1),
    "forgeries": _scope(forgeries=1),
    "double-frees": _scope(double_frees=1),
}
"""Name -> how it changes a variant. Each is off in the base scopes s1 to s4."""

EXCLUSIVE = frozenset({frozenset({"decode", "pressure"})})
"""Pairs of which one contains the other."""


def variants(name: str, scope: Scope, contract: Contract, pairs: bool) -> list[Variant]:
    """The base with each mode alone, or with every pair of modes."""
    base = Variant(name, scope, contract)
    chosen = (
        [(mode,) for mode in MODES]
        if not pairs
        else [pair for pair in combinations(MODES, 2) if frozenset(pair) not in EXCLUSIVE]
    )
    return [_varied(base, modes) for modes in chosen]


def _varied(base: Variant, modes: tuple[str, ...]) -> Variant:
    for mode in modes:
        base = MODES[mode](base)
    return base._replace(name="+".join((base.name, *modes)))
