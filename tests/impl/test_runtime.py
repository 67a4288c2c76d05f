"""A whole engine serving on its own: free-running, on the ledger and with threads and bytes, and across a restart."""

import pickle
import random

import pytest

from kvoffload.config import Config, Discipline, OutputFrom, Reports, StoreMode
from kvoffload.devices.device import Device
from kvoffload.devices.host import Host
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.ids import Key
from kvoffload.operations import Stream
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.step_report import Finished, Launched, OutputHandled, Reported, StepReport

MODES = [
    (discipline, store_mode, output_from, depth, reports)
    for discipline in ("pinning", "fencing")
    for store_mode in ("eager", "lazy")
    for output_from in ("all", "first")
    for depth in (1, 2)
    for reports in ("per-job", "marks")
]


def keys(text: str) -> tuple[Key, ...]:
    return tuple(int.from_bytes(text[: length + 1].encode()) for length in range(len(text)))


def names_of(report: StepReport) -> list[str]:
    return [type(event).__name__ for event in report.events]


def serve(runtime: Runtime, requests: int, chance: random.Random) -> None:
    """Requests come while others are served; some are aborted or preempted; now and then the caches are reset."""
    engine = runtime.engine
    submitted = 0
    while submitted < requests or engine.has_work():
        alive = [number for number, request in engine.requests.items() if request.phase is not Phase.DONE]
        if submitted < requests and len(alive) < 4:
            text = chance.choice(["abcd", "abxy", "ab", "pqrs", "pq"])
            engine.submit(submitted, keys(text)[:2], keys(text))
            submitted += 1
        if not runtime.step().events:
            continue  # the streams are at work; clients must not act more often because a machine is slow
        draw = chance.random()
        running = [number for number in alive if engine.requests[number].phase in (Phase.RUNNING, Phase.LOADING)]
        if draw < 0.04 and running:
            engine.preempt(chance.choice(running))
        elif draw < 0.06 and running:
            engine.abort(chance.choice(running))
        elif draw < 0.09:
            engine.reset(chance.choice(["invalidate", "evict"]), chance.choice(["preempt", "keep"]))


def served(device: Device, config: Config, requests: int) -> Engine:
    engine = Engine.create(config)
    try:
        serve(Runtime(engine, device), requests, random.Random(1))
        assert device.misreads == []
    finally:
        device.close()
    assert {request.phase for request in engine.requests.values()} == {Phase.DONE}
    assert (engine.device_pool.free, engine.host_pool.free) == (6, 4)
    return engine


@pytest.mark.parametrize(("discipline", "store_mode", "output_from", "depth", "reports"), MODES)
def test_on_the_free_running_ledger(
    discipline: Discipline, store_mode: StoreMode, output_from: OutputFrom, depth: int, reports: Reports
) -> None:
    config = Config(discipline, 6, 4, 2, store_mode, output_from, depth, reports=reports)
    engine = served(Ledger.create(2, 6, 4, gated=False), config, 100)
    assert engine.connector.next_job > 20


@pytest.mark.parametrize(("discipline", "store_mode", "output_from", "depth", "reports"), MODES)
def test_with_threads_and_bytes(
    discipline: Discipline, store_mode: StoreMode, output_from: OutputFrom, depth: int, reports: Reports
) -> None:
    config = Config(discipline, 6, 4, 2, store_mode, output_from, depth, reports=reports)
    engine = served(Host(2, 6, 4, delays=3), config, 10)
    assert engine.connector.next_job > 0


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_a_restarted_scheduler_goes_on_with_the_workers_that_it_left(discipline: Discipline) -> None:
    """Jobs are in flight and reports outstanding when the engine is pickled; the new one has the same workers."""
    ledger = Ledger.create(2, 6, 4)
    first = Engine.create(Config(discipline, 6, 4, 2))
    first.submit(0, keys("abcd")[:2], keys("abcd"))
    first.submit(1, keys("abxy")[:2], keys("abxy"))
    Runtime(first, ledger).step()
    for worker in range(2):
        ledger.run(worker, Stream.COMPUTE)
    second = Runtime(pickle.loads(pickle.dumps(first)), ledger)
    for _ in range(50):
        second.step()
        while lanes := ledger.runnable():
            ledger.run(*lanes[0])
    assert {request.phase for request in second.engine.requests.values()} == {Phase.DONE}
    assert not second.engine.has_work()
    assert ledger.misreads == []


def test_engine_and_device_must_agree_on_the_workers() -> None:
    with pytest.raises(ValueError, match="3 workers"):
        Runtime(Engine.create(Config("pinning", 2, 2, 2)), Ledger.create(3, 2, 2))


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_a_report_names_everything_that_an_iteration_did(discipline: Discipline) -> None:
    runtime = Runtime(Engine.create(Config(discipline, 2, 2)), Ledger.create(1, 2, 2, gated=False))
    runtime.engine.submit(0, keys("ab"), keys("ab"))
    launching = runtime.step()
    assert names_of(launching) == ["Admitted", "Launched"]
    assert launching.plan is not None
    assert launching.events[1] == Launched(launching.plan)
    assert runtime.step() == StepReport((Reported(0, (0,)), OutputHandled(0), Finished(0)), None)
    assert names_of(runtime.step()) == []
