"""Copies that fail: on real threads and on the ledger, what workers report of them and what the engine makes of it."""

import random
from collections.abc import Callable, Collection

import pytest
from tests.impl.simulated_cuda import SimulatedDriver

from kvoffload.config import Config, Discipline
from kvoffload.devices.cuda import Cuda
from kvoffload.devices.device import Device, FailsOnDemand
from kvoffload.devices.host import Host
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import NotRunnable, UnknownJob
from kvoffload.operations import Compute, Content, Copy, Share, Stream, Tier, Unreadable
from kvoffload.request import Phase
from kvoffload.runtime import Runtime

from .conftest import Serving

Make = Callable[..., Serving]
both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])
A, B = Content(1, 0), Content(2, 0)
STORE = Copy(0, Stream.STORE, ((0, 1), (1, 0)), 0, ())
FILL = Compute(0, (Share((), ((0, A), (1, B))),), ())


def host_device() -> Host:
    return Host(1, 2, 2, gated=True)


def cuda_device() -> Cuda:
    return Cuda(SimulatedDriver(), 1, 2, 2, gated=True)


def ledger_device() -> Ledger:
    return Ledger.create(1, 2, 2)


@pytest.mark.parametrize("make", [host_device, ledger_device, cuda_device])
def test_what_fails_is_torn_and_told_with_the_job_and_the_stream_goes_on(
    make: Callable[[], Host | Ledger | Cuda],
) -> None:
    device = make()
    assert isinstance(device, FailsOnDemand)
    try:
        device.enqueue(0, FILL)
        device.enqueue(0, STORE)
        device.enqueue(0, STORE._replace(job=1))
        with pytest.raises(NotRunnable):
            device.run_failing(0, Stream.COMPUTE)
        device.run(0, Stream.COMPUTE)
        device.run_failing(0, Stream.STORE, (0,))
        assert [device.content(Tier.HOST, 0, block) for block in (0, 1)] == [B, Unreadable.TORN]
        assert device.collect(0, 0) == (0,)
        with pytest.raises(UnknownJob):
            device.collect(0, 0)
        device.run_failing(0, Stream.STORE)
        assert device.collect(0, 1) == (0, 1)
        assert [device.content(Tier.HOST, 0, block) for block in (0, 1)] == [Unreadable.TORN, Unreadable.TORN]
        device.enqueue(0, STORE._replace(job=2))
        device.run(0, Stream.STORE)
        assert device.collect(0, 2) == ()
        assert [device.content(Tier.HOST, 0, block) for block in (0, 1)] == [B, A]
    finally:
        device.close()


def test_an_error_of_torch_in_one_blocks_copy_is_a_failed_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not made to fail on demand: the copy itself raises, on the stream's thread."""
    with Host(1, 2, 2, layers=3) as device:
        device.enqueue(0, FILL)
        device.drain()
        target = device.tensors(Tier.HOST, 0)
        layer = target._layers[1]
        layer.clear()
        layer.whole = layer.whole[:, 1:]  # of another width: nothing can be copied into it
        device.enqueue(0, STORE)
        device.drain()
        assert device.collect(0, 0) == (0, 1)
        assert device.content(Tier.HOST, 0, 1) is Unreadable.TORN


def test_an_error_of_torch_is_told_of_its_block_and_of_no_other_of_the_job() -> None:
    with Host(1, 2, 2, layers=3) as device:
        device.enqueue(0, FILL)
        device.drain()
        layer = device.tensors(Tier.HOST, 0)._layers[2]
        layer[1] = layer.whole[1, 1:]
        device.enqueue(0, STORE)
        device.drain()
        assert device.collect(0, 0) == (0,)
        assert [device.content(Tier.HOST, 0, block) for block in (0, 1)] == [B, Unreadable.TORN]


@both
def test_a_request_whose_load_fails_gets_to_its_end(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 4)
    for number, prompt in enumerate(("ab", "cd")):
        s.submit(number, prompt)
        s.serve()
    s.submit(2, "ab")
    s.runtime.schedule()
    s.ledger.run_failing(0, Stream.LOAD, (1,))
    assert s.runtime.poll()[0] == (0, (2,), (2,))
    assert s.engine.requests[2].computed == 1
    assert s.cached() == (1, 3)
    assert s.engine.statistics.failed_blocks == 1
    s.serve()
    assert s.engine.requests[2].phase is Phase.DONE
    assert s.ledger.misreads == []
    assert s.in_use() == (0, 0)


@both
def test_a_report_of_failures_that_makes_no_sense_is_refused_whole(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2)
    s.submit(0, "ab")
    s.compute()
    s.run(Stream.STORE)
    for position in (-1, 2):
        with pytest.raises(ValueError, match=f"pair {position} of job 0 is said to have failed; it has 2"):
            s.engine.report(0, [0], {0: (position,)})
    assert s.engine.jobs[0].awaiting == {0}
    assert s.engine.jobs[0].failed == set()
    s.engine.report(0, [0], {0: (1,), 7: (9,)})  # of a job that is not reported nothing is taken in
    assert s.cached() == (2, 1)


@both
def test_an_old_report_of_failures_is_stale(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2)
    s.submit(0, "ab")
    s.compute()
    s.drain()
    stale = s.engine.statistics.stale_completions
    s.engine.report(0, [0], {0: (0, 1)})
    assert s.engine.statistics.stale_completions == stale + 1
    assert s.cached() == (2, 2)
    assert s.engine.requests[0].stored == 2


@both
@pytest.mark.parametrize("threads", [False, True])
def test_a_machine_on_which_a_third_of_all_copies_fail_serves_right_bytes(
    discipline: Discipline, threads: bool
) -> None:
    """Free-running, two workers, each failing by itself. Every read finds what it should, and everything drains."""
    config = Config(discipline, 5, 6, workers=2)
    chance = random.Random(3)
    failed = 0

    def faults(worker: int, copy: Copy) -> Collection[int]:
        nonlocal failed
        positions = [position for position in range(len(copy.pairs)) if chance.random() < 1 / 3]
        failed += len(positions)
        return positions

    device: Device
    device = Host(2, 5, 6, faults=faults) if threads else Ledger.create(2, 5, 6)
    try:
        engine = Engine.create(config)
        runtime = Runtime(engine, device)
        for number in range(40):
            text = chance.choice(["abcd", "abxy", "pqrs", "pq"])
            keys = tuple(int.from_bytes(text[: length + 1].encode()) for length in range(len(text)))
            engine.submit(number, keys[:2], keys)
        for _ in range(200_000):
            if not engine.has_work():
                break
            runtime.step()
            if isinstance(device, Ledger) and (ready := device.runnable()):
                worker, stream = chance.choice(ready)
                if stream is Stream.COMPUTE or chance.random() < 2 / 3:
                    device.run(worker, stream)
                else:
                    failed += 1
                    device.run_failing(worker, stream, (0,))
        assert not engine.has_work()
        assert device.misreads == []
        assert failed > 8
        assert engine.statistics.failed_blocks > 4
        assert engine.device_pool.free == 5
        assert engine.host_pool.free == 6
    finally:
        device.close()


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_everybody_who_counts_on_a_store_that_fails_offers_the_block_again(
    serving: Make, discipline: Discipline
) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.compute()
    s.submit(2, "abc")
    s.runtime.schedule()
    assert [request.stored for request in s.engine.requests.values()] == [2, 3]
    s.engine.report(0, [0], {0: (0, 1)})
    assert [request.stored for request in s.engine.requests.values()] == [0, 0]
