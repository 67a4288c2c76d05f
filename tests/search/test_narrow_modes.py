"""Modes with few commands beside their own, as `check` takes them: each is on, and what only it does is done."""

import pytest

from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvmodel.machine import Machine
from kvproof.scopes import SCOPES
from kvproof.search.graph import Graph
from kvproof.search.modes import LISTED, MODES, WITH_DEATHS, Variant, switched_on, variants_of

OWN = {
    "depth": {"Grow", "Stop"},
    "marks": {"ReportMark", "RepeatMark", "LoseMark"},
    "lookups": {"Lookup", "ReleaseLookup"},
    "decode": {"Grow"},
    "pressure": {"Grow", "PreemptUnderPressure"},
    "partial": {"Grow", "PreemptUnderPressure"},
    "window": {"Grow"},
    "evict": {"Reset"},
    "survivors": {"Reset"},
    "tiers": {"Reset", "Lookup", "ReleaseLookup"},
    "second": {"Reset", "Promote"},
    "resets": {"Reset"},
    "duplicates": {"DuplicateReport"},
    "losses": {"LoseReport"},
    "expiry": {"LoseReport", "Expire"},
    "deaths": {"Die"},
    "declared": {"Die", "DeclareDead"},
    "forgeries": {"ForgeReport"},
    "failures": {"FailCopy"},
    "partial-failures": {"FailCopy"},
    "double-frees": {"FreeTwice"},
}
"""What is done in a mode alone; the others change how something is done."""

LEFT = {"Abort", "Preempt"}


def taken(variant: Variant) -> set[str]:
    found = Graph(Machine(variant.contract, variant.scope), allowance=True).explore(lambda: False, lambda words: None)
    assert found.finished
    assert found.violation is None
    return {action for action, times in found.actions.items() if times}


def modes_of(variant: Variant) -> tuple[str, ...]:
    return tuple(variant.name.split("+")[1:])


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize(("wanted", "size"), [("larger", "s2"), ("listed", "s1")])
def test_what_only_these_modes_do_is_done(wanted: str, size: str, discipline: Discipline) -> None:
    for variant in variants_of(Variant(size, SCOPES[size], Contract(discipline)), wanted):
        modes = modes_of(variant)
        assert {*modes} <= {*switched_on(variant.contract, variant.scope)}, variant.name
        done = taken(variant)
        assert {action for mode in modes for action in OWN.get(mode, ())} <= done, variant.name
        assert not done & LEFT, variant.name


def test_each_mode_is_there_and_each_listed_pair_without_deaths() -> None:
    base = Variant("s1", SCOPES["s1"], Contract("pinning"))
    assert [modes_of(variant) for variant in variants_of(base, "larger")] == [(mode,) for mode in MODES]
    pairs = [modes_of(variant) for variant in variants_of(base, "listed")]
    assert len(pairs) == 26
    assert {*pairs, *WITH_DEATHS} == {*LISTED}


def test_a_reset_comes_where_a_mode_is_about_resets() -> None:
    base = Variant("s1", SCOPES["s1"], Contract("pinning"))
    resets = {variant.name.rpartition("+")[2]: variant.scope.resets for variant in variants_of(base, "larger")}
    assert {mode for mode, times in resets.items() if times == 2} == {"resets"}
    assert {mode for mode, times in resets.items() if times == 1} == {"evict", "survivors", "tiers", "second"}


def test_the_sizes_are_those_of_the_base_with_the_mode() -> None:
    base = Variant("s2", SCOPES["s2"], Contract("fencing"))
    for narrow in variants_of(base, "larger"):
        [mode] = modes_of(narrow)
        whole = MODES[mode](base).scope
        assert narrow.scope._replace(preempts=whole.preempts, aborts=whole.aborts, resets=whole.resets) == whole
