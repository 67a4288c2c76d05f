"""A failing trace of 500 commands comes down to the shortest there is, or one more, in seconds, and stays there."""

import pytest

from tests.bugs.bank import BY_ID
from tests.bugs.long_walks import shrunk

SEED = 1

BUGS = (
    "pool-take-keeps-key",
    "hits-counted-as-free",
    "launches-too-far-ahead",
    "storing-kept-at-completion",
    "draining-report-filtered",
    "load-publishes-nothing",
    "mark-of-either-stream",
    "stores-what-the-host-has",
    "lazy-stores-in-flight-again",
    "event-missing-at-eviction",
)
IN_THE_SUITE = ("stores-what-the-host-has", "lazy-stores-in-flight-again")
"""One of each discipline; the others are walked by `make bugs`."""


def test_the_bugs_are_of_every_kind_with_a_trace_and_of_both_disciplines() -> None:
    bugs = [BY_ID[name] for name in BUGS]
    assert {bug.kind for bug in bugs} == {"pool", "scheduler", "ordering", "connector", "completion", "store", "event"}
    assert {bug.discipline for bug in bugs} == {"pinning", "fencing"}
    assert {BY_ID[name].discipline for name in IN_THE_SUITE} == {"pinning", "fencing"}


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=() if bug in IN_THE_SUITE else pytest.mark.bank) for bug in BUGS]
)
def test_a_long_walk_comes_down_to_the_shortest_way(bug: str) -> None:
    found = shrunk(BY_ID[bug], SEED)
    assert found.walked >= 500
    assert found.shortest == BY_ID[bug].commands
    assert found.left <= found.shortest + 1
    assert found.seconds < 10
    assert (found.same, found.twice) == (True, True)
