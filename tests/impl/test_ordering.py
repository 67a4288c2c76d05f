"""Which operation waits for which, and that each wait is what keeps a copy right."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload import ordering
from kvoffload.config import Discipline
from kvoffload.ids import Pair
from kvoffload.operations import Compute, Content, Copy, Share, Stream
from kvoffload.plan import LaunchPlan, PlannedCopy, PlannedShare

Make = Callable[..., Any]

A, B = Content(1, 0), Content(2, 0)
STORE = PlannedCopy(5, (Pair(0, 7, 1), Pair(1, 8, 2)))
LOAD = PlannedCopy(4, (Pair(9, 2, 3),))
SHARE = PlannedShare(1, ((0, A),), ((1, B),), 1)


def test_a_launch_with_compute() -> None:
    plan = LaunchPlan(3, (SHARE,), (STORE,), (4,), (1, 2), 3, (LOAD,))
    assert ordering.operations(plan) == (
        Compute(3, (Share(((0, A),), ((1, B),)),), (1, 2)),
        Copy(4, Stream.LOAD, ((9, 2),), 2, (1, 2)),
        Copy(5, Stream.STORE, ((0, 7), (1, 8)), 3, (1, 2)),
    )


def test_a_launch_with_a_second_tier() -> None:
    """What goes down or comes back is on a stream of its own, and waits for what was ordered flushed alone."""
    cascades, promotions = (PlannedCopy(6, (Pair(7, 2, 1),)),), (PlannedCopy(3, (Pair(1, 6, 4),)),)
    plan = LaunchPlan(None, (), (), (), (1, 2), 4, (), cascades, promotions)
    assert ordering.operations(plan) == (
        Copy(3, Stream.PROMOTION, ((1, 6),), -1, (1, 2)),
        Copy(6, Stream.CASCADE, ((7, 2),), -1, (1, 2)),
    )


def test_a_launch_without_compute() -> None:
    plan = LaunchPlan(None, (), (STORE,), (4,), (), 0, (LOAD,))
    assert ordering.operations(plan) == (
        Copy(4, Stream.LOAD, ((9, 2),), -1, ()),
        Copy(5, Stream.STORE, ((0, 7), (1, 8)), -1, ()),
    )


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_a_store_waits_for_the_compute_that_writes_its_source(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2, workers=2)
    s.submit(1, "ab")
    s.runtime.schedule()
    assert s.ledger.runnable() == ((0, Stream.COMPUTE), (1, Stream.COMPUTE))
    s.ledger.run(1, Stream.COMPUTE)
    assert s.ledger.runnable() == ((0, Stream.COMPUTE), (1, Stream.STORE))


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_a_load_waits_for_the_worker_that_still_computes_in_its_destination(
    serving: Make, discipline: Discipline
) -> None:
    """With the output taken from the first worker, blocks are given away while the second still works in them."""
    s = serving(discipline, 2, 4, workers=2, output_from="first")
    s.submit(1, "ab")
    s.serve()
    s.submit(2, "xy")
    s.runtime.schedule()
    s.ledger.run(0, Stream.COMPUTE)
    s.runtime.handle_output()
    s.engine.finish(2) if discipline == "fencing" else s.engine.abort(2)
    s.ledger.run(0, Stream.STORE)
    s.submit(3, "ab")
    if discipline == "pinning":
        assert not s.engine.can_admit(3)
        return
    assert s.runtime.schedule().plan.loads == (2,)
    assert s.ledger.runnable() == ((0, Stream.LOAD), (1, Stream.COMPUTE))
    s.ledger.run(1, Stream.COMPUTE)
    assert s.ledger.runnable() == ((0, Stream.LOAD), (1, Stream.STORE))
    s.serve()
    assert s.ledger.misreads == []


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_a_worker_may_lag_by_one_step_and_not_by_two(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 3, workers=2, output_from="first")
    s.submit(1, "a", "bc")
    for _ in range(2):
        assert s.runtime.schedule().plan is not None
        s.ledger.run(0, Stream.COMPUTE)
        s.runtime.handle_output()
    assert s.runtime.schedule().plan is None
    assert not s.runtime.can_launch()
    assert s.engine.can_launch()
    s.ledger.run(1, Stream.COMPUTE)
    assert s.runtime.can_launch()
    s.serve()
    assert s.ledger.misreads == []
