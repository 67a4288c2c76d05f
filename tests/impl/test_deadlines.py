"""Deadlines of transfers: who asks, what expires, and that a late copy harms nobody."""

from collections.abc import Callable

import pytest

from kvoffload.config import Config, Discipline
from kvoffload.deadlines import Deadlines
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import NoDeadline, NotOutstanding, ShutDown, UnknownJob
from kvoffload.operations import Stream
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.step_report import Expired
from kvoffload.transfer_job import JobState

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


class Clock:
    """Seconds that go on when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def serving(discipline: Discipline, clock: Callable[[], float], workers: int = 1) -> tuple[Runtime, Ledger]:
    config = Config(discipline, 2, 4, workers, deadline=5.0)
    ledger = Ledger.create(workers, 2, 4)
    return Runtime(Engine.create(config), ledger, clock=clock), ledger


def computed(runtime: Runtime, ledger: Ledger) -> None:
    """The step of one request of two blocks; its store is on its way."""
    runtime.engine.submit(0, (1, 2), (1, 2))
    runtime.step()
    for worker in range(ledger.workers):
        ledger.run(worker, Stream.COMPUTE)
    runtime.poll()


@both
def test_a_transfer_expires_once_its_deadline_has_passed(discipline: Discipline) -> None:
    clock = Clock()
    runtime, ledger = serving(discipline, clock)
    computed(runtime, ledger)
    clock.now += 4.9
    assert runtime.poll() == ()
    clock.now += 0.1
    assert runtime.poll() == (Expired(0),)
    assert runtime.poll() == ()
    assert runtime.engine.statistics.expired_jobs == 1
    assert runtime.engine.host_pool.free == 4
    ledger.run(0, Stream.STORE)
    runtime.poll()
    assert runtime.engine.statistics.stale_completions == 1
    assert dict(runtime.engine.jobs) == {}
    assert runtime.engine.host_pool.cache.blocks == {}


@both
def test_the_engine_serves_on_when_every_report_of_a_worker_is_lost(discipline: Discipline) -> None:
    """All is computed, nothing is ever stored, and in the end nothing is held."""
    clock = Clock()
    runtime, ledger = serving(discipline, clock, workers=2)
    for number in range(4):
        runtime.engine.submit(number, (1, 2 + number), (1, 2 + number))
    for _ in range(200):
        if not runtime.engine.has_work():
            break
        runtime.step()
        while ready := ledger.runnable():
            ledger.run(*ready[0])
        for job in ledger.copied(1):
            ledger.collect(1, job)
        clock.now += 1.0
    assert all(request.phase is Phase.DONE for request in runtime.engine.requests.values())
    assert not runtime.engine.has_work()
    assert runtime.engine.statistics.expired_jobs > 0
    assert runtime.engine.host_pool.cache.blocks == {}
    assert (runtime.engine.device_pool.free, runtime.engine.host_pool.free) == (2, 4)
    assert runtime.engine.reset("invalidate", "preempt")
    assert ledger.misreads == []


@both
def test_a_deadline_counts_from_when_the_transfer_is_seen_and_not_for_queued_ones(discipline: Discipline) -> None:
    clock = Clock()
    runtime, ledger = serving(discipline, clock)
    computed(runtime, ledger)
    watch = Deadlines(runtime.engine, clock)
    assert watch.overdue() == ()
    clock.now += 5.0
    assert watch.overdue() == (0,)
    assert watch.overdue() == (0,)
    ledger.run(0, Stream.STORE)
    runtime.deliver(0, [0])
    assert watch.overdue() == ()


@both
def test_without_a_deadline_nothing_expires(discipline: Discipline) -> None:
    engine = Engine.create(Config(discipline, 2, 2))
    with pytest.raises(NoDeadline):
        engine.expire(0)
    with pytest.raises(ValueError, match="no deadline"):
        Deadlines(engine, Clock())
    assert Runtime(engine, Ledger.create(1, 2, 2)).deadlines is None


@both
def test_what_cannot_expire(discipline: Discipline) -> None:
    clock = Clock()
    runtime, ledger = serving(discipline, clock)
    computed(runtime, ledger)
    with pytest.raises(UnknownJob):
        runtime.engine.expire(1)
    runtime.engine.expire(0)
    with pytest.raises(NotOutstanding):
        runtime.engine.expire(0)


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan")])
def test_a_deadline_is_a_positive_number(deadline: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        Config("pinning", 2, 2, deadline=deadline)


@both
def test_an_engine_shuts_down_when_a_worker_is_declared_dead(discipline: Discipline) -> None:
    runtime, ledger = serving(discipline, Clock(), workers=2)
    computed(runtime, ledger)
    engine = runtime.engine
    ledger.die(1)
    engine.declare_dead(1)
    assert engine.requests[0].phase is Phase.DONE
    assert (engine.device_pool.free, engine.host_pool.free) == (2, 4)
    assert not engine.device_pool.cache.blocks
    assert not engine.has_work()
    assert [(job.id, job.state) for job in engine.jobs.values()] == [(0, JobState.FORGOTTEN)]
    ledger.run(0, Stream.STORE)
    runtime.poll()
    assert engine.statistics.stale_completions == 1
    assert not engine.host_pool.cache.blocks
    with pytest.raises(ShutDown, match="request 1 comes after the end: a worker was declared dead"):
        engine.submit(1, (1,), (1,))
    with pytest.raises(ShutDown, match=r"^the engine has shut down already$"):
        engine.declare_dead(0)


@both
def test_a_load_that_no_worker_knows_of_is_gone_when_the_engine_shuts_down(discipline: Discipline) -> None:
    runtime, ledger = serving(discipline, Clock())
    for number, keys in enumerate([(1, 2), (3, 4)]):
        runtime.engine.submit(number, keys, keys)
        while runtime.engine.has_work():
            runtime.step()
            while ready := ledger.runnable():
                ledger.run(*ready[0])
    runtime.engine.submit(2, (1, 2), (1, 2))
    assert runtime.engine.admit(2).load == 2
    runtime.engine.declare_dead(0)
    assert dict(runtime.engine.jobs) == {}
    assert (runtime.engine.device_pool.free, runtime.engine.host_pool.free) == (2, 4)


@both
def test_what_a_step_kept_of_a_request_that_left_it_is_free_when_the_engine_shuts_down(discipline: Discipline) -> None:
    runtime, _ = serving(discipline, Clock())
    runtime.engine.submit(0, (1, 2), (1, 2))
    runtime.step()
    runtime.engine.abort(0)
    assert runtime.engine.device_pool.free == 0
    runtime.engine.declare_dead(0)
    assert runtime.engine.device_pool.free == 2


def test_who_cannot_be_declared_dead() -> None:
    runtime, _ = serving("pinning", Clock())
    with pytest.raises(ValueError, match="worker 1 of 1"):
        runtime.engine.declare_dead(1)
    with pytest.raises(NoDeadline, match="workers have no deadline here; worker 0 is waited for"):
        Engine.create(Config("pinning", 2, 4, 1)).declare_dead(0)
