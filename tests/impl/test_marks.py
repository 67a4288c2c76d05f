"""High-water marks: what carries one on a worker, what one completes, and that none is missed."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.completions.marks import NO_MARK, StreamMark, WorkerMarks, passed
from kvoffload.config import Config, Discipline
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import UnknownJob
from kvoffload.operations import Stream
from kvoffload.plan import LaunchPlan, PlannedCopy
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.step_report import Reported
from kvoffload.transfer_job import Direction, JobState
from kvoffload.worker import Worker

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


# The worker's side.


def test_a_mark_never_passes_a_copy_that_still_runs() -> None:
    """A device with several engines for its copies ends them in any order."""
    stream = StreamMark.fresh()
    for job in (2, 3, 5, 8):
        stream.given(job)
    seen = []
    for job in (3, 8, 2, 5):
        stream.ran(job)
        seen.append(stream.mark)
    assert seen == [NO_MARK, NO_MARK, 3, 8]
    assert (stream.pending, stream.ahead) == ([], set())


class AnyOrder(Ledger):
    """A device that says of copies that they have run, in whatever order the test likes."""

    def ran(self, job: int) -> None:
        self.shards[0].finished.append(job)


def launched(worker: Worker, stores: tuple[int, ...], loads: tuple[int, ...]) -> None:
    worker.launch(
        LaunchPlan(
            None,
            (),
            tuple(PlannedCopy(job, ()) for job in stores),
            loads,
            (),
            0,
            tuple(PlannedCopy(job, ()) for job in loads),
        )
    )


def test_the_worker_keeps_a_mark_for_each_stream() -> None:
    device = AnyOrder.create(1, 2, 2)
    worker = Worker(0, device, WorkerMarks.fresh())
    launched(worker, stores=(1, 4), loads=(0, 2))
    launched(worker, stores=(), loads=(3,))
    assert (worker.get_mark(Direction.STORE), worker.get_mark(Direction.LOAD)) == (NO_MARK, NO_MARK)
    device.ran(4)
    device.ran(2)
    assert (worker.get_mark(Direction.STORE), worker.get_mark(Direction.LOAD)) == (NO_MARK, NO_MARK)
    device.ran(0)
    assert (worker.get_mark(Direction.STORE), worker.get_mark(Direction.LOAD)) == (NO_MARK, 2)
    device.ran(3)
    device.ran(1)
    assert (worker.get_mark(Direction.STORE), worker.get_mark(Direction.LOAD)) == (4, 3)
    assert (worker.get_mark(Direction.STORE), worker.get_mark(Direction.LOAD)) == (4, 3)
    assert device.copied(0) == ()


def test_what_failed_is_said_with_marks_until_one_is_taken_in() -> None:
    stream = StreamMark.fresh()
    for job in (0, 1, 2):
        stream.given(job)
    stream.ran(0)
    stream.ran(2, (1,))
    stream.ran(1, (0, 3))
    assert (stream.mark, stream.failed) == (2, {1: (0, 3), 2: (1,)})
    stream.taken_in(1)
    assert stream.failed == {2: (1,)}
    stream.taken_in(2)
    assert stream.failed == {}


def test_a_worker_that_reports_single_jobs_has_no_marks() -> None:
    with pytest.raises(RuntimeError, match="has no marks"):
        Worker(0, Ledger.create(1, 2, 2)).get_mark(Direction.STORE)
    assert Runtime(Engine.create(Config("pinning", 2, 2)), Ledger.create(1, 2, 2)).workers[0].marks is None


# The scheduler's side.


def two_stores(s: Any) -> None:
    s.submit(1, "a")
    s.compute()
    s.submit(2, "b")
    s.compute()


@both
def test_one_mark_completes_several_jobs(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, workers=2, reports="marks")
    two_stores(s)
    s.run(Stream.STORE)
    assert s.runtime.deliver_mark(0, Direction.STORE, 1) == (0, 1)
    assert s.cached() == (2, 0)
    assert [job.awaiting for job in s.engine.jobs.values()] == [{1}, {1}]
    assert s.runtime.deliver_mark(1, Direction.STORE, 0) == (0,)
    assert s.cached() == (2, 1)
    assert s.runtime.deliver_mark(1, Direction.STORE, 1) == (1,)
    assert s.cached() == (2, 2)
    assert s.engine.jobs == {}


@both
def test_a_mark_that_comes_late_or_again_is_no_news(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, reports="marks")
    two_stores(s)
    s.run(Stream.STORE)
    assert s.engine.report_mark(0, Direction.STORE, 1) == (0, 1)
    before = pickle.dumps(s.engine)
    for mark in (1, 0, 1):
        assert s.engine.report_mark(0, Direction.STORE, mark) == ()
    assert pickle.dumps(s.engine) == before


@both
def test_the_mark_of_stores_says_nothing_of_loads(serving: Make, discipline: Discipline) -> None:
    """The load has the smaller id, and still runs when the younger store is complete."""
    s = serving(discipline, 2, 3, reports="marks")
    s.submit(1, "a")
    s.runtime.schedule()
    s.run(Stream.COMPUTE)
    s.run(Stream.STORE)
    s.runtime.deliver_mark(0, Direction.STORE, 0)
    s.engine.preempt(1)
    s.runtime.handle_output()
    s.submit(2, "b")
    s.compute()
    s.run(Stream.STORE)
    assert [(job.id, str(job.direction)) for job in s.engine.jobs.values()] == [(1, "LOAD"), (2, "STORE")]
    assert passed(s.engine.jobs, Direction.STORE, 0, 2) == (2,)
    assert s.runtime.deliver_mark(0, Direction.STORE, 2) == (2,)
    assert s.engine.requests[1].phase is Phase.LOADING
    assert not s.engine.can_wake(1)
    s.run(Stream.LOAD)
    assert s.runtime.deliver_mark(0, Direction.LOAD, 1) == (1,)
    assert s.engine.can_wake(1)


@both
def test_a_mark_beyond_every_job_is_refused_and_changes_nothing(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, reports="marks")
    two_stores(s)
    before = pickle.dumps(s.engine)
    for direction in Direction:
        for mark in (2, 99, -1):
            with pytest.raises(UnknownJob):
                s.engine.report_mark(0, direction, mark)
    with pytest.raises(UnknownJob, match="worker 0 has not copied every store up to job 1"):
        s.runtime.deliver_mark(0, Direction.STORE, 1)
    assert pickle.dumps(s.engine) == before


@both
def test_a_mark_of_a_direction_that_has_none_is_refused_and_a_failed_load_is_not_forgotten(
    serving: Make, discipline: Discipline
) -> None:
    s = serving(discipline, 4, 4, reports="marks")
    two_stores(s)
    s.runtime.workers[0].mark_of(Direction.LOAD).failed[5] = (0,)
    for direction in (Direction.CASCADE, Direction.PROMOTION):
        with pytest.raises(ValueError, match=f"no mark of a {direction.lower()}"):
            s.runtime.deliver_mark(0, direction, 0)
    assert s.runtime.workers[0].mark_of(Direction.LOAD).failed == {5: (0,)}


@both
def test_old_and_new_jobs_around_a_reset_are_passed_by_one_mark(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, reports="marks")
    s.submit(1, "a")
    s.compute()
    assert s.engine.reset("invalidate", "preempt") is (discipline == "fencing")
    s.runtime.schedule()
    states = [job.state for job in s.engine.jobs.values()]
    assert states == [JobState.ABANDONED if discipline == "pinning" else JobState.FORGOTTEN, JobState.LIVE]
    while lanes := s.ledger.runnable():
        s.ledger.run(*lanes[0])
    s.runtime.handle_output()
    assert s.runtime.deliver_mark(0, Direction.STORE, 1) == (0, 1)
    assert s.engine.jobs == {}
    assert s.cached() == (1, 1)
    assert s.in_use() == (1, 0)


# None is missed.


@both
def test_a_lost_mark_is_made_good_by_the_next_poll(serving: Make, discipline: Discipline) -> None:
    """Nothing more is launched and nothing more runs: the worker states its mark whether or not it has moved."""
    s = serving(discipline, 4, 4, reports="marks")
    two_stores(s)
    s.run(Stream.STORE)
    assert s.runtime.workers[0].get_mark(Direction.STORE) == 1  # and what was to be told the engine is lost
    assert s.ledger.copied(0) == ()
    assert s.runtime.poll() == (Reported(0, (0, 1)),)
    assert s.engine.jobs == {}
    assert s.runtime.poll() == ()


@both
def test_a_lost_mark_does_not_lose_what_failed(serving: Make, discipline: Discipline) -> None:
    """Otherwise the next mark would say of a store that failed that it was copied, and garbage could be hit."""
    s = serving(discipline, 4, 4, workers=2, reports="marks")
    s.submit(1, "ab")
    s.compute()
    s.ledger.run_failing(0, Stream.STORE, (1,))
    s.ledger.run(1, Stream.STORE)
    assert s.runtime.workers[0].get_mark(Direction.STORE) == 0  # lost
    assert s.runtime.poll() == (Reported(0, (0,), (0,)), Reported(1, (0,)))
    assert s.cached() == (2, 1)
    assert s.engine.statistics.failed_blocks == 1
    assert s.runtime.workers[0].mark_of(Direction.STORE).failed == {}


@both
def test_a_launch_of_stores_without_compute_is_reported(serving: Make, discipline: Discipline) -> None:
    """Lazy stores are launched when nobody computes, and the engine may be idle ever after."""
    s = serving(discipline, 4, 4, store_mode="lazy", reports="marks")
    s.submit(1, "ab")
    s.compute()
    s.engine.finish(1)
    plan = s.runtime.launch()
    assert (plan.step, len(plan.stores)) == (None, 1)
    s.run(Stream.STORE)
    assert s.runtime.step().events[:1] == (Reported(0, (0,)),)
    assert s.cached() == (2, 2)
    assert s.in_use() == (0, 0)
    assert not s.engine.has_work()


@both
def test_a_launch_of_a_load_without_compute_is_reported(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 3, reports="marks")
    s.submit(1, "a")
    s.runtime.schedule()
    s.run(Stream.COMPUTE)
    s.run(Stream.STORE)
    s.runtime.poll()
    s.engine.preempt(1)
    assert s.engine.device_pool.cache.blocks != {}
    assert s.engine.reset("evict", "preempt", "device") is True
    plan = s.runtime.schedule().plan
    assert (plan.step, plan.loads) == (None, (1,))
    s.run(Stream.LOAD)
    assert s.runtime.poll() == (Reported(0, (1,)),)
    assert s.engine.can_wake(1)


@both
def test_a_restarted_scheduler_goes_on_with_the_marks_of_its_workers(discipline: Discipline) -> None:
    """A mark from before the restart is stated again, and is news to the new engine."""
    ledger = Ledger.create(2, 4, 4)
    runtime = Runtime(Engine.create(Config(discipline, 4, 4, 2, reports="marks")), ledger)
    runtime.engine.submit(0, (1, 2), (1, 2))
    runtime.step()
    saved = pickle.dumps(runtime.engine)
    while lanes := ledger.runnable():
        ledger.run(*lanes[0])
    assert runtime.workers[0].get_mark(Direction.STORE) == 0
    again = Runtime(pickle.loads(saved), ledger, [worker.marks for worker in runtime.workers if worker.marks])
    for _ in range(3):
        again.step()
    assert {request.phase for request in again.engine.requests.values()} == {Phase.DONE}
    assert again.engine.jobs == {}
    assert not again.engine.has_work()


def test_reports_must_be_of_a_kind_that_exists() -> None:
    with pytest.raises(ValueError, match="reports 'mark' do not exist; use per-job or marks"):
        Config("pinning", 2, 2, reports="mark")  # type: ignore[arg-type]
