"""What becomes of every two modes: searched together, refused, part of each other, or sampled together by fuzz."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

from kvmodel.contract import Contract
from kvmodel.errors import BadScope
from kvmodel.machine import Machine
from kvproof.rows import ROWS
from kvproof.scopes import SCOPES, parse_scope
from kvproof.search.modes import LISTED, MODES, Variant, paired, switched_on, turns_at


class Treatment(StrEnum):
    """SEARCHED: every transition of a scope with both is taken. PART: one has the other in it, so that this is so of
    the one alone. SAMPLED: fuzz drives scopes with both. REFUSED: no machine has both. NONE: none of these."""

    SEARCHED = "searched"
    PART = "part"
    SAMPLED = "sampled"
    REFUSED = "refused"
    NONE = "none"


class Pair(NamedTuple):
    """Two modes, in the order of MODES, and why they are treated as they are, in words."""

    one: str
    other: str
    treatment: Treatment
    why: str

    @property
    def name(self) -> str:
        return f"{self.one}+{self.other}"


def pairs() -> list[Pair]:
    """Every two modes."""
    searched = {frozenset(pair) for pair in paired()}
    scopes = _fuzzed()
    return [_pair(one, other, frozenset((one, other)) in searched, scopes) for one, other in combinations(MODES, 2)]


def _pair(one: str, other: str, searched: bool, scopes: Sequence[tuple[str, frozenset[str]]]) -> Pair:
    if searched:
        return Pair(one, other, Treatment.SEARCHED, _where(one, other))
    if (whole := _whole(one, other)) is not None:
        return Pair(one, other, Treatment.PART, f"{whole} has both, and is searched alone")
    if (why := _objection(one, other)) is not None:
        return Pair(one, other, Treatment.REFUSED, why)
    driven = list(dict.fromkeys([scope for scope, on in scopes if {one, other} <= on]))
    if not driven:
        return Pair(one, other, Treatment.NONE, "no scope has both")
    more = f", and at {len(driven) - 1} scopes more" if len(driven) > 1 else ""
    return Pair(one, other, Treatment.SAMPLED, f"fuzz has both at {driven[0]}{more}")


def _where(one: str, other: str) -> str:
    if {(one, other), (other, one)} & {*LISTED}:
        return "at s1 and s2, by check with few commands beside their own, and whole by check --all"
    return "at s1 and s2, by check --all"


def _with(*modes: str) -> Variant:
    variant = Variant("s1", SCOPES["s1"], Contract("pinning"))
    for mode in modes:
        variant = MODES[mode](variant)
    return variant


def _on(variant: Variant) -> set[str]:
    return set(switched_on(variant.contract, variant.scope))


def _whole(one: str, other: str) -> str | None:
    """Which of them has the other in it, if one does."""
    return next((mode for mode in (one, other) if {one, other} <= _on(_with(mode))), None)


def _objection(one: str, other: str) -> str | None:
    variant = _with(one, other)
    try:
        Machine(variant.contract, variant.scope)
    except BadScope as error:
        return str(error)
    return None


def _fuzzed() -> list[tuple[str, frozenset[str]]]:
    """The scopes that fuzz drives in check and check --all, once for each of its turns, with the modes that are on."""
    return [
        (name, frozenset(switched_on(contract, scope)))
        for name, scope in map(parse_scope, _scopes_of_fuzz())
        for contract in turns_at(Contract("pinning"), scope)
    ]


def _scopes_of_fuzz() -> Iterator[str]:
    for row in ROWS:
        if row.engine == "fuzz":
            for instance in (*row.check["pinning"], *row.nightly["pinning"]):
                yield instance.scope
