"""The liveness algorithms on graphs made by hand, and against plain recursion on random ones."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from kvproof.search.liveness import Edges, cannot_reach, components, cyclic_core

NONE = frozenset[int]()


def edges(*found: tuple[int, int] | tuple[int, int, int]) -> Edges:
    """Transitions (source, target) of kind 0, or (source, target, kind)."""
    rows = [(*edge, 0)[:3] for edge in found]
    return Edges(
        array("i", [row[0] for row in rows]), array("i", [row[1] for row in rows]), array("B", [row[2] for row in rows])
    )


def goal(states: int, *goals: int) -> bytearray:
    marks = bytearray(states)
    for state in goals:
        marks[state] = 1
    return marks


def test_everything_reaches_the_goal_along_a_line() -> None:
    assert cannot_reach(3, edges((0, 1), (1, 2)), [2], NONE) is None


def test_the_first_trapped_state_is_named() -> None:
    assert cannot_reach(4, edges((0, 1), (1, 2), (0, 3)), [2], NONE) == 3
    assert cannot_reach(4, edges((0, 1), (1, 3), (0, 2)), [2], NONE) == 1


def test_a_cycle_with_a_way_out_is_no_trap_and_one_without_is() -> None:
    assert cannot_reach(3, edges((0, 1), (1, 0), (1, 2)), [2], NONE) is None
    assert cannot_reach(3, edges((0, 1), (1, 0), (2, 2)), [2], NONE) == 0


def test_no_goal_traps_the_initial_state() -> None:
    assert cannot_reach(2, edges((0, 1)), [], NONE) == 0
    assert cannot_reach(1, edges(), [0], NONE) is None


def test_kinds_that_are_no_way_to_the_goal() -> None:
    assert cannot_reach(2, edges((0, 1, 7)), [1], NONE) is None
    assert cannot_reach(2, edges((0, 1, 7)), [1], frozenset({7})) == 0
    assert cannot_reach(2, edges((0, 1, 7), (0, 1, 3)), [1], frozenset({7})) is None


def test_the_core_holds_cycles_and_what_lies_between_them() -> None:
    """0 leads in, 1-2 is a cycle, 3 lies between, 4 is a cycle of its own, 5 leads out."""
    graph = edges((0, 1), (1, 2), (2, 1), (2, 3), (3, 4), (4, 4), (4, 5))
    assert cyclic_core(6, graph, goal(6), NONE) == [1, 2, 3, 4]
    assert sorted(map(sorted, components([1, 2, 3, 4], graph, NONE))) == [[1, 2], [4]]


def test_a_cycle_through_the_goal_is_none() -> None:
    graph = edges((0, 1), (1, 2), (2, 0))
    assert cyclic_core(3, graph, goal(3), NONE) == [0, 1, 2]
    assert cyclic_core(3, graph, goal(3, 1), NONE) == []


def test_a_cycle_by_what_nobody_repeats_is_none() -> None:
    graph = edges((0, 1), (1, 0, 9))
    assert cyclic_core(2, graph, goal(2), NONE) == [0, 1]
    assert cyclic_core(2, graph, goal(2), frozenset({9})) == []
    assert components([0, 1], graph, frozenset({9})) == []


def test_an_acyclic_graph_has_no_core() -> None:
    assert cyclic_core(4, edges((0, 1), (0, 2), (1, 3), (2, 3)), goal(4), NONE) == []


def test_components_of_a_long_cycle_need_no_recursion() -> None:
    states = 20_000
    ring = edges(*[(state, (state + 1) % states) for state in range(states)])
    (component,) = components(range(states), ring, NONE)
    assert len(component) == states


SIZE = 7
graphs = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=18)


def reachable(found: list[tuple[int, int]], start: int) -> set[int]:
    """States to which one transition or more leads from `start`."""
    seen: set[int] = set()
    stack = [start]
    while stack:
        state = stack.pop()
        for source, target in found:
            if source == state and target not in seen:
                seen.add(target)
                stack.append(target)
    return seen


@given(graphs, st.sets(st.integers(0, SIZE - 1), min_size=1))
def test_cannot_reach_agrees_with_plain_search(found: list[tuple[int, int]], goals: set[int]) -> None:
    trapped = [state for state in range(SIZE) if state not in goals and not reachable(found, state) & goals]
    assert cannot_reach(SIZE, edges(*found), sorted(goals), NONE) == (min(trapped) if trapped else None)


@given(graphs, st.sets(st.integers(0, SIZE - 1)))
def test_core_and_components_agree_with_plain_search(found: list[tuple[int, int]], goals: set[int]) -> None:
    """Two states are in one component when each leads to the other, outside of the goal."""
    inside = [(source, target) for source, target in found if source not in goals and target not in goals]
    onward = {state: reachable(inside, state) for state in range(SIZE)}
    cyclic = {state for state in range(SIZE) if state in onward[state]}
    wanted = {frozenset(other for other in cyclic if other in onward[s] and s in onward[other]) for s in cyclic}
    core = cyclic_core(SIZE, edges(*found), goal(SIZE, *goals), NONE)
    assert cyclic <= set(core)
    assert all(onward[state] & cyclic or state in cyclic for state in core)
    assert {frozenset(component) for component in components(core, edges(*found), NONE)} == wanted
