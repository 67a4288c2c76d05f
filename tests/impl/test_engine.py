"""What the engine itself adds to scheduler and connector: questions, counts, and the report of a scheduling call."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.cache_events import AllCleared
from kvoffload.config import Config, Discipline
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.engine import Engine
from kvoffload.operations import Stream, Tier
from kvoffload.step_report import Admitted, Grown, Launched, Preempted, StepReport, Woken

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


class Quiet(FencingConnector):
    """A connector of somebody else, who adds nothing."""


def test_a_connector_of_ones_own_takes_the_place_of_the_disciplines() -> None:
    engine = Engine.create(Config("fencing", 2, 4, workers=3, events=True), Quiet)
    assert type(engine.connector) is Quiet
    assert engine.scheduler.connector is engine.connector
    assert engine.connector.device is engine.device_pool
    assert engine.connector.config == engine.config
    assert engine.reset("evict", "preempt") is True
    assert engine.take_events() == (AllCleared(Tier.HOST), AllCleared(Tier.DEVICE))


def with_ab_on_the_host_alone(s: Any) -> None:
    """Jobs 0 and 1 stored the blocks of requests 1 and 8, both collected."""
    s.submit(1, "ab")
    s.serve()
    s.submit(8, "wxyz")
    s.serve()
    s.engine.collect(1)
    s.engine.collect(8)


@both
def test_a_call_reports_what_it_did_with_every_detail(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 8)
    with_ab_on_the_host_alone(s)
    s.submit(2, "ab", "c")
    report = s.engine.schedule()
    admitted, launched = report.events
    assert isinstance(admitted, Admitted)
    assert (admitted.request, admitted.admission.load) == (2, 2)
    assert launched == Launched(report.plan)
    assert report.plan is not None
    assert report.plan.loads == (2,)
    for worker in s.runtime.workers:
        worker.launch(report.plan)
    s.drain()
    report = s.engine.schedule()
    woken, grown, launched = report.events
    assert woken == Woken(2)
    assert isinstance(grown, Grown)
    assert (grown.request, grown.block) == (2, s.engine.requests[2].table[2])
    assert launched == Launched(report.plan)


@both
def test_a_call_launches_unless_it_is_told_not_to(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "a")
    report = s.engine.schedule(False)
    assert [type(event) for event in report.events] == [Admitted]
    assert report.plan is None
    report = s.engine.schedule()
    assert report == StepReport((Launched(report.plan),), report.plan)
    assert report.plan is not None
    assert report.plan.step == 0


@both
def test_a_call_that_preempts_says_whom_and_for_whom(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 8)
    s.submit(1, "a", "b")
    s.submit(2, "v", "w")
    s.submit(3, "x", "y")
    s.compute()
    s.drain()
    preempted, grown, _ = s.engine.schedule().events
    assert preempted == Preempted(3)
    assert isinstance(grown, Grown)
    assert grown.request == 1


@both
def test_who_can_grow(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2)
    s.submit(1, "a", "b")
    assert s.engine.can_grow(1) is False
    s.submit(2, "x")
    s.engine.admit(1)
    s.engine.admit(2)
    s.compute()
    assert s.engine.device_pool.free == 0
    assert s.engine.can_grow(1) is False
    s.drain()
    s.engine.finish(2)
    assert s.engine.can_grow(1) is True
    assert s.engine.can_grow(2) is False
    assert s.engine.can_grow(7) is False


@both
def test_an_engine_has_work_as_long_as_a_step_is_not_handled(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2, store_mode="lazy")
    assert s.engine.has_work() is False
    s.submit(1, "a")
    assert s.engine.has_work() is True
    s.runtime.schedule()
    s.engine.abort(1)
    assert s.engine.has_work() is True
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    assert s.engine.has_work() is False


@both
def test_preemptions_under_pressure_are_counted(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 8, store_mode="lazy")
    s.submit(1, "a", "bc")
    s.submit(2, "v", "w")
    s.submit(3, "x", "y")
    s.compute()
    assert s.engine.statistics.pressure_preemptions == 0
    assert s.engine.preempt_under_pressure() == 3
    s.engine.grow(1)
    s.runtime.launch()
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    assert s.engine.preempt_under_pressure() == 2
    assert s.engine.statistics.pressure_preemptions == 2


@both
def test_stale_reports_failed_blocks_expired_jobs_and_resets_are_counted(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 8, deadline=1.0)
    s.submit(1, "ab")
    s.submit(2, "cd")
    s.compute()
    s.engine.report(0, [0], {0: (0, 1)})
    s.engine.report(0, [1], {1: (0,)})
    for _ in range(3):
        s.engine.report(0, [0])
    assert (s.engine.statistics.failed_blocks, s.engine.statistics.stale_completions) == (3, 3)
    s.runtime.launch()
    for job in list(s.engine.jobs):
        s.engine.expire(job)
    assert list(s.engine.jobs) == [2, 3]
    assert (s.engine.statistics.expired_jobs, s.engine.statistics.failed_blocks) == (2, 6)
    assert [s.engine.reset("invalidate", "keep"), s.engine.reset("invalidate", "keep")] == [False, False]
    assert s.engine.reset("evict", "preempt") is True
    assert (s.engine.statistics.resets, s.engine.statistics.false_resets) == (3, 2)


def test_pinning_nobody_is_admitted_while_somebody_cannot_grow(serving: Make) -> None:
    """Not even who needs no block: all that it wants is on the device, held by a store."""
    s = serving("pinning", 2, 4)
    s.submit(1, "a", "b")
    s.submit(2, "c")
    s.compute()
    s.engine.finish(2)
    s.submit(3, "c")
    assert s.engine.schedule().events == ()
    s.drain()
    s.serve()
    assert [request.phase for request in s.engine.requests.values()] == ["DONE"] * 3


@both
def test_a_lookup_is_kept_while_the_blocks_of_a_step_come_back_anyway(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 4, store_mode="lazy")
    s.submit(1, "a")
    s.serve()
    s.submit(2, "de")
    s.runtime.schedule()
    s.engine.abort(2)
    s.submit(3, "ab")
    s.engine.lookup(3)
    assert s.in_use()[0] == 3
    assert s.engine.schedule().events == ()
    assert s.engine.requests[3].pins is not None


@both
def test_after_one_that_wants_to_grow_at_once_nobody_is_admitted(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 4, admission="partial")
    s.submit(1, "a")
    s.serve()
    s.submit(2, "ab")
    s.submit(3, "x")
    assert [event.request for event in s.engine.schedule().events if isinstance(event, Admitted)] == [2]


@both
def test_who_fits_is_admitted_although_one_before_it_does_not(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 4)
    s.submit(1, "ab")
    s.runtime.schedule()
    s.submit(2, "xy")
    s.submit(3, "z")
    assert [event.request for event in s.engine.schedule(False).events if isinstance(event, Admitted)] == [3]
