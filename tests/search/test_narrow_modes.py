"""Modes with few commands beside their own, as `check` takes them: each is on, and what only it does is done."""

from collections import deque
from collections.abc import Iterator

import pytest

from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvmodel.machine import Machine
from kvmodel.state import State
from kvproof.scopes import SCOPES
from kvproof.search.canonical import canonical
from kvproof.search.modes import LISTED, MODES, Variant, switched_on
from kvproof.search.narrow import contains, narrowed, variants_of

OWN = {
    "depth": {"Grow", "Stop"},
    "marks": {"ReportMark", "RepeatMark", "LoseMark"},
    "lookups": {"Lookup", "ReleaseLookup"},
    "decode": {"Grow"},
    "pressure": {"Grow", "PreemptUnderPressure"},
    "partial": {"Grow", "Reset"},
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


def states_of(variant: Variant) -> Iterator[tuple[Machine, State]]:
    """Each state, in canonical names, the nearest first."""
    machine = Machine(variant.contract, variant.scope)
    known = {canonical(variant.contract, machine.initial())}
    todo = deque(known)
    while todo:
        state = todo.popleft()
        yield machine, state
        for action in machine.actions(state):
            after = canonical(variant.contract, machine.step(state, action))
            if after not in known:
                known.add(after)
                todo.append(after)


def is_taken(variant: Variant, wanted: set[str]) -> bool:
    """Whether each of these actions is possible in some state."""
    missing = set(wanted)
    for machine, state in states_of(variant):
        missing -= {type(action).__name__ for action in machine.actions(state)}
        if not missing:
            return True
    return False


def modes_of(variant: Variant) -> tuple[str, ...]:
    return tuple(variant.name.split("+")[1:])


def base(size: str, discipline: Discipline = "pinning") -> Variant:
    return Variant(size, SCOPES[size], Contract(discipline))


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize(("wanted", "size"), [("larger", "s2"), ("listed", "s1"), ("listed", "s2")])
def test_what_only_these_modes_do_is_done(wanted: str, size: str, discipline: Discipline) -> None:
    for variant in variants_of(base(size, discipline), wanted):
        modes = modes_of(variant)
        assert {*modes} <= {*switched_on(variant.contract, variant.scope)}, variant.name
        assert is_taken(variant, {action for mode in modes for action in OWN.get(mode, ())}), variant.name
        assert not variant.scope.aborts
        assert not variant.scope.preempts


@pytest.mark.parametrize("size", ["s1", "s2"])
def test_each_listed_pair_is_there(size: str) -> None:
    pairs = [modes_of(variant) for variant in variants_of(base(size), "listed")]
    assert len(pairs) == 36
    assert {*pairs} == {*LISTED}


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_each_mode_is_there_by_itself_or_in_a_pair_that_has_all_that_it_has(discipline: Discipline) -> None:
    alone = [modes_of(variant) for variant in variants_of(base("s2", discipline), "larger")]
    assert alone == [
        ("first",),
        ("marks",),
        ("pressure",),
        ("evict",),
        ("resets",),
        ("expiry",),
        ("declared",),
        ("forgeries",),
        ("partial-failures",),
        ("double-frees",),
    ]
    pairs = variants_of(base("s2", discipline), "listed")
    for mode in MODES.keys() - {mode for (mode,) in alone}:
        narrow = narrowed(base("s2", discipline), (mode,))
        assert any(mode in modes_of(pair) and contains(pair, narrow) for pair in pairs), mode


@pytest.mark.parametrize(("more", "less"), [(("failures", "tiers"), ("tiers",)), (("depth", "duplicates"), ("depth",))])
def test_what_contains_a_mode_has_all_of_its_states(more: tuple[str, ...], less: tuple[str, ...]) -> None:
    def states(modes: tuple[str, ...]) -> set[State]:
        variant = narrowed(base("s2", "fencing"), modes)
        unused = Machine(variant.contract, variant.scope).initial().faults_left
        forms = [state._replace(faults_left=none) for _, state in states_of(variant) if state.faults_left == unused]
        return {canonical(variant.contract, state) for state in forms}

    none = Machine(Contract("fencing"), SCOPES["s2"]).initial().faults_left
    assert states(less) <= states(more)
    assert len(states(less)) > 100


def test_nothing_contains_what_has_another_size_or_mode_or_more_faults() -> None:
    tiers, failing = (narrowed(base("s2"), modes) for modes in (("tiers",), ("tiers", "failures")))
    assert contains(failing, tiers)
    assert not contains(tiers, failing)
    assert not contains(failing._replace(scope=failing.scope._replace(device_blocks=3)), tiers)
    assert not contains(failing._replace(contract=failing.contract._replace(depth=2)), tiers)


def test_a_reset_comes_where_a_mode_is_about_resets() -> None:
    resets = {mode: narrowed(base("s1"), (mode,)).scope.resets for mode in MODES}
    assert {mode for mode, times in resets.items() if times == 2} == {"resets"}
    assert {mode for mode, times in resets.items() if times == 1} == {
        *("evict", "survivors", "tiers", "second"),
        "partial",
    }


@pytest.mark.parametrize("size", ["s1", "s2"])
def test_the_sizes_are_those_of_the_base_with_the_mode_but_for_the_largest(size: str) -> None:
    differing = set[str]()
    for mode in MODES:
        narrow, whole = narrowed(base(size, "fencing"), (mode,)).scope, MODES[mode](base(size, "fencing")).scope
        if narrow._replace(preempts=whole.preempts, aborts=whole.aborts, resets=whole.resets) != whole:
            differing.add(mode)
    assert differing == {"partial", "pressure", "second"}
