"""States and transitions of the named scopes, as literals: whatever changes in rules or the canonical form shows here.

If a number changes on purpose, write down in the commit why. Transitions are counted before states are merged.
"""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import pytest

from kvmodel import Contract, Machine, Scope
from kvmodel.contract import DISCIPLINES, Discipline
from kvproof.scopes import SCOPES
from kvproof.search.graph import Explored, Graph
from kvproof.search.modes import MODES, PAIRED_WITH_ALL, Variant, variants
from kvproof.search.product import Product
from kvproof.targets.kvoffload import Ledger


@cache
def explored(contract: Contract, scope: Scope) -> Explored:
    """Each once, however many tests look at it."""
    found = Graph(Machine(contract, scope)).explore(lambda: False, lambda said: None)
    assert found.finished
    assert found.violation is None
    return found


@pytest.mark.parametrize(
    ("discipline", "scope", "states", "transitions", "depth"),
    [
        ("pinning", "s1", 206, 531, 24),
        ("pinning", "s2", 434, 1365, 34),
        ("pinning", "s3", 26_600, 121_634, 44),
        ("fencing", "s1", 846, 2539, 47),
        ("fencing", "s2", 3918, 15_427, 67),
    ],
)
def test_named_scopes(discipline: Discipline, scope: str, states: int, transitions: int, depth: int) -> None:
    found = explored(Contract(discipline), SCOPES[scope])
    assert (found.states, found.transitions, found.depth) == (states, transitions, depth)


MODES_OF_S1 = {
    "lazy": ((56, 132), (102, 280)),
    "first": ((206, 531), (846, 2539)),
    "depth": ((919, 3003), (1711, 6040)),
    "marks": ((866, 3738), (581, 2471)),
    "lookups": ((448, 1536), (942, 3035)),
    "decode": ((1104, 3413), (2895, 9806)),
    "pressure": ((3251, 7478), (10_579, 29_348)),
    "partial": ((489, 940), (689, 1374)),
    "repeats": ((254, 532), (568, 1286)),
    "window": ((124, 183), (100, 155)),
    "evict": ((230, 662), (910, 2762)),
    "survivors": ((235, 646), (871, 2634)),
    "tiers": ((616, 2288), (907, 2956)),
    "second": ((440, 984), (1628, 4473)),
    "resets": ((325, 900), (7129, 28_074)),
    "duplicates": ((424, 1274), (1752, 6072)),
    "losses": ((266, 697), (1148, 4040)),
    "expiry": ((874, 2589), (1382, 4658)),
    "forgeries": ((412, 1268), (1692, 5924)),
    "failures": ((425, 964), (2103, 5596)),
    "partial-failures": ((644, 1703), (586, 1441)),
    "deaths": ((94, 173), (122, 294)),
    "declared": ((98, 216), (126, 329)),
    "double-frees": ((412, 1298), (1692, 5922)),
}
"""Mode -> states and transitions of s1 with it, under pinning and under fencing."""


@pytest.mark.parametrize("mode", MODES_OF_S1)
def test_each_mode_alone(mode: str) -> None:
    for discipline, counts in zip(("pinning", "fencing"), MODES_OF_S1[mode], strict=True):
        variant = MODES[mode](Variant("s1", SCOPES["s1"], Contract(discipline)))
        found = explored(variant.contract, variant.scope)
        assert (found.states, found.transitions) == counts


def test_every_mode_is_in_the_table() -> None:
    assert set(MODES_OF_S1) == set(MODES)


SWITCHED_OFF: dict[str, tuple[Callable[[Contract], Contract], Callable[[Scope], Scope]]] = {
    "no fault may occur": (lambda contract: contract._replace(environment=frozenset()), lambda scope: scope),
    "a window that eager stores do not have": (lambda contract: contract, lambda scope: scope._replace(lazy_window=1)),
    "the first of one worker is all of them": (
        lambda contract: contract._replace(output_from="first"),
        lambda scope: scope,
    ),
    "repeats of symbols that occur once": (
        lambda contract: contract,
        lambda scope: scope._replace(repeats=True),
    ),
    "a window that nobody outgrows": (lambda contract: contract, lambda scope: scope._replace(window=2)),
    "survivors of no reset": (lambda contract: contract, lambda scope: scope._replace(survivors=True, resets=0)),
    "a second tier of no block": (lambda contract: contract, lambda scope: scope._replace(second_blocks=0)),
    "one tier of no reset": (lambda contract: contract, lambda scope: scope._replace(tiers=("host",), resets=0)),
}


@pytest.mark.parametrize("name", SWITCHED_OFF)
@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_what_is_switched_off_costs_no_state(name: str, discipline: Discipline) -> None:
    contract, scope = Contract(discipline), SCOPES["s1"]
    of_contract, of_scope = SWITCHED_OFF[name]
    changed = of_scope(scope)
    without, base = explored(of_contract(contract), changed), explored(contract, scope._replace(resets=changed.resets))
    assert (without.states, without.transitions) == (base.states, base.transitions)


@pytest.mark.parametrize(
    ("discipline", "scope", "states", "least_edges"),
    [("pinning", "s1", 206, 531), ("pinning", "s2", 434, 1365), ("fencing", "s1", 846, 2539)],
)
def test_the_product_search_sees_every_state_and_takes_every_transition(
    discipline: Discipline, scope: str, states: int, least_edges: int
) -> None:
    """At least one pair for each state of the machine, and at least one edge for each of its transitions."""
    machine = Machine(Contract(discipline), SCOPES[scope])
    target = Ledger(machine.setting)
    found = Product(machine, target, composites=True).search(lambda: False, lambda said: None)
    assert found.divergence is None
    assert found.finished
    assert found.states == states
    assert found.pairs >= states
    assert found.edges >= least_edges


def test_a_search_that_is_cut_says_so() -> None:
    graph = Graph(Machine(Contract("pinning"), SCOPES["s3"]))
    found = graph.explore(lambda: True, lambda said: None)
    assert not found.finished
    assert found.violation is None
    assert 0 < found.states < 26_600


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_every_action_is_taken_by_the_mode_that_needs_it(discipline: Discipline) -> None:
    """Which actions the base takes, and which only a mode does."""
    base = {"Submit", "Admit", "Launch", "Run", "Report", "HandleOutput", "Preempt", "Finish", "Abort", "Reset", "Wake"}
    only_in = {
        "marks": {"ReportMark", "RepeatMark", "LoseMark"},
        "lookups": {"Lookup", "ReleaseLookup"},
        "tiers": {"Lookup", "ReleaseLookup"},
        "decode": {"Grow"},
        "depth": {"Grow", "Stop"},
        "pressure": {"Grow", "PreemptUnderPressure"},
        "partial": {"Grow", "PreemptUnderPressure"},
        "duplicates": {"DuplicateReport"},
        "losses": {"LoseReport"},
        "forgeries": {"ForgeReport"},
        "expiry": {"LoseReport", "Expire"},
        "failures": {"FailCopy"},
        "partial-failures": {"FailCopy"},
        "double-frees": {"FreeTwice"},
        "deaths": {"Die"},
        "declared": {"Die", "DeclareDead"},
    }
    s1 = Variant("s1", SCOPES["s1"], Contract(discipline))
    taken = {kind for kind, times in explored(s1.contract, s1.scope).actions.items() if times}
    assert taken == base
    for mode, more in only_in.items():
        variant = MODES[mode](s1)
        taken = {kind for kind, times in explored(variant.contract, variant.scope).actions.items() if times}
        assert more <= taken, mode
        assert taken <= base | more, mode


def test_a_request_that_lost_its_store_holds_up_those_who_come_after_those_who_run() -> None:
    """Of two that share a prefix the later one stores its last block, and the report is lost: the block stays pinned.

    The earlier one grows into nothing, and the later one, preempted for it, is not admitted although all its blocks
    could be hit. A visible hang, which the goals exempt as they exempt whoever waits for the report itself.
    """
    found = variants("s1", SCOPES["s1"], Contract("pinning"), True)
    variant = next(variant for variant in found if variant.name == "s1+partial+losses")
    graph = Graph(Machine(variant.contract, variant.scope))
    explored = graph.explore(lambda: False, lambda words: None)
    assert (explored.states, explored.transitions, explored.violation) == (717, 1516, None)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("name", ["s1", "s2"])
def test_every_two_of_the_modes_that_are_paired_with_all_are_taken_together_at_both_sizes(
    discipline: Discipline, name: str
) -> None:
    """Twelve modes make 66 pairs, and decoding is part of pressure: 65."""
    found = [set(variant.name.split("+")) for variant in variants(name, SCOPES[name], Contract(discipline), True)]
    among = [pair for pair in combinations(PAIRED_WITH_ALL, 2) if not any(set(pair) <= modes for modes in found)]
    assert among == [("decode", "pressure")]


def test_pressure_with_two_resets_on_two_fencing_workers_has_one_request_fill_the_device() -> None:
    found = variants("s2", SCOPES["s2"], Contract("fencing"), True)
    scope = next(variant.scope for variant in found if variant.name.endswith("+pressure+resets"))
    assert (scope.device_blocks, scope.workers, scope.resets) == (2, 2, 2)
    assert [len(prompt) + scope.decode for prompt in scope.prompts] == [2, 2]
