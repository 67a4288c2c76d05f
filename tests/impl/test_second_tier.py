"""The second host tier: what goes down and comes back, on symbols and on a mapped file."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.impl.conftest import Serving
from tests.impl.simulated_cuda import SimulatedDriver

from kvoffload.cache_events import AllCleared, BlockRemoved, BlockStored
from kvoffload.config import Config
from kvoffload.devices.cuda import Cuda
from kvoffload.devices.host import Host
from kvoffload.devices.ledger import Ledger
from kvoffload.devices.mapped_file import MappedFiles
from kvoffload.engine import Engine
from kvoffload.errors import NotRunnable, OutOfBlocks, UnknownBlock, WrongPhase
from kvoffload.kv_tensors import MAGIC, KVTensors, Pattern
from kvoffload.operations import Compute, Content, Copy, Share, Stream, Tier, Unreadable
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.scheduler import BELOW_HOST, Deferred
from kvoffload.step_report import Promoted
from kvoffload.transfer_job import Direction

A, B = Content(1, 0), Content(2, 0)


def cascaded(serving: Callable[..., Serving], discipline: str) -> Serving:
    """`ab` on the host, `a` on the second tier; request 0 runs, and has both on the device."""
    s = serving(discipline, 2, 1, second_blocks=1, events=True)
    s.submit(0, "ab")
    s.compute()
    s.drain()
    s.runtime.schedule()
    s.drain()
    s.runtime.schedule()
    s.drain()
    return s


def second(serving: Callable[..., Serving], discipline: str) -> Serving:
    """`ab` on the host, `a` on the second tier alone; request 0 waits, and holds nothing."""
    s = cascaded(serving, discipline)
    assert s.engine.reset("evict", "preempt", "device")
    return s


BOTH = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


@BOTH
def test_a_request_waits_for_what_comes_back_and_then_loads_it(
    serving: Callable[..., Serving], discipline: str
) -> None:
    s = second(serving, discipline)
    assert s.engine.lookup(0) == Deferred(BELOW_HOST)
    with pytest.raises(WrongPhase, match="is promoted first"):
        s.engine.admit(0)
    report = s.runtime.schedule()
    assert [event.request for event in report.events if isinstance(event, Promoted)] == [0]
    assert report.plan is not None
    assert [len(copy.pairs) for copy in report.plan.promotions] == [1]
    assert s.engine.requests[0].phase is Phase.WAITING
    with pytest.raises(WrongPhase, match="waits for transfers already"):
        s.engine.promote(0)
    s.drain()
    s.runtime.schedule()
    assert s.engine.requests[0].phase is Phase.LOADING
    s.serve()
    assert s.engine.requests[0].phase is Phase.DONE
    assert s.ledger.misreads == []


@BOTH
def test_what_was_promoted_is_referenced_by_its_job_alone(serving: Callable[..., Serving], discipline: str) -> None:
    s = second(serving, discipline)
    job = s.engine.promote(0)
    assert (job.direction, job.request, job.launched) == (Direction.PROMOTION, 0, False)
    assert (s.engine.host_pool.counts, s.engine.second_pool.counts) == ([1], [1])
    assert s.engine.reset("evict", "keep", "host")
    assert (s.engine.host_pool.counts, s.engine.second_pool.counts) == ([0], [0])
    assert s.engine.jobs == {}
    assert s.engine.requests[0].jobs == set()


@BOTH
def test_a_reset_of_the_device_leaves_a_promotion_that_is_not_launched(
    serving: Callable[..., Serving], discipline: str
) -> None:
    s = second(serving, discipline)
    job = s.engine.promote(0)
    assert s.engine.reset("evict", "preempt", "device")
    assert list(s.engine.jobs) == [job.id]
    assert s.engine.requests[0].jobs == {job.id}
    assert (s.engine.host_pool.counts, s.engine.second_pool.counts) == ([1], [1])
    s.serve()
    assert s.engine.requests[0].phase is Phase.DONE


@BOTH
def test_what_the_device_has_is_not_promoted(serving: Callable[..., Serving], discipline: str) -> None:
    """Although the host lacks it, and has a block for it."""
    s = cascaded(serving, discipline)
    s.engine.preempt(0)
    assert not s.engine.can_promote(0)
    with pytest.raises(OutOfBlocks, match="the second tier alone has nothing for request 0, or no host block is free"):
        s.engine.connector.promote(s.engine.requests[0], 2)


@BOTH
def test_events_tell_what_is_on_the_second_tier(serving: Callable[..., Serving], discipline: str) -> None:
    s = second(serving, discipline)
    below = [event for event in s.engine.take_events() if event.tier is Tier.SECOND]
    key = s.engine.requests[0].prompt[0]
    assert below == [BlockStored(Tier.SECOND, key)]
    s.engine.reset("evict", "keep", "host")
    assert AllCleared(Tier.SECOND) in s.engine.take_events()


def test_an_engine_without_a_second_tier_tells_nothing_of_one(serving: Callable[..., Serving]) -> None:
    s = serving("pinning", 2, 1, events=True)
    assert s.engine.reset("evict", "preempt")
    assert s.engine.take_events() == (AllCleared(Tier.HOST), AllCleared(Tier.DEVICE))
    assert s.engine.second_pool.size == 0


def test_a_failed_promotion_removes_what_could_not_be_read(serving: Callable[..., Serving]) -> None:
    s = second(serving, "pinning")
    s.engine.take_events()
    s.runtime.schedule()
    s.ledger.run_failing(0, Stream.PROMOTION)
    s.runtime.poll()
    key = s.engine.requests[0].prompt[0]
    assert BlockRemoved(Tier.SECOND, key) in s.engine.take_events()
    assert s.engine.statistics.failed_blocks == 1
    assert not s.engine.can_promote(0)
    assert s.engine.can_admit(0)


def test_a_failed_cascade_is_counted_and_made_again(serving: Callable[..., Serving]) -> None:
    s = serving("pinning", 2, 1, second_blocks=1)
    s.submit(0, "ab")
    s.compute()
    s.drain()
    s.runtime.schedule()
    s.ledger.run_failing(0, Stream.CASCADE)
    s.runtime.poll()
    assert s.engine.statistics.failed_blocks == 1
    report = s.runtime.schedule()
    assert report.plan is not None
    assert len(report.plan.cascades) == 1


def test_a_claimed_block_was_free_wherever_it_was_queued(serving: Callable[..., Serving]) -> None:
    pool = serving("pinning", 4, 4).engine.host_pool
    pool.cache.publish([(2, 7)])
    pool.claim(2)
    assert (list(pool.free_blocks()), pool.counts, pool.cache.keys) == ([0, 1, 3], [0, 0, 1, 0], [0, 0, 0, 0])
    with pytest.raises(OutOfBlocks, match="block 2 is referenced"):
        pool.claim(2)
    assert list(pool.free_blocks()) == [0, 1, 3]


def test_bad_sizes_and_modes_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="second_blocks must not be negative; 0 is no second tier"):
        Config("pinning", 1, 1, second_blocks=-1)
    with pytest.raises(ValueError, match="a second tier needs reports per-job"):
        Config("pinning", 1, 1, second_blocks=1, reports="marks")


def test_a_device_without_a_second_tier_is_refused() -> None:
    engine = Engine.create(Config("pinning", 2, 2, second_blocks=3))
    with pytest.raises(ValueError, match="the device has 0 blocks of a second tier, the engine 3"):
        Runtime(engine, Ledger.create(1, 2, 2))
    with (
        Cuda(SimulatedDriver(), 1, 2, 2) as cuda,
        pytest.raises(ValueError, match="the device has 0 blocks of a second tier, the engine 3"),
    ):
        Runtime(engine, cuda)


# The mapped file.


Open = Callable[..., Host | Cuda]


def on_host(*sizes: int, **options: Any) -> Host:
    return Host(*sizes, **options)


def on_cuda(*sizes: int, **options: Any) -> Cuda:
    """Simulated: it runs on no GPU."""
    return Cuda(SimulatedDriver(haste=2), *sizes, **options)


both_devices = pytest.mark.parametrize("opened", [on_host, on_cuda])


def copied(stream: Stream, job: int, source: int, destination: int) -> Copy:
    return Copy(job, stream, ((source, destination),), -1, tuple(range(job)))


@both_devices
def test_bytes_go_to_the_file_and_come_back(opened: Open) -> None:
    with opened(2, 2, 2, gated=True, second_blocks=3) as device:
        for worker in (0, 1):
            device.enqueue(worker, Compute(0, (Share((), ((0, A),)),), ()))
            device.enqueue(worker, Copy(0, Stream.STORE, ((0, 1),), 0, ()))
            device.enqueue(worker, copied(Stream.CASCADE, 1, 1, 2))
            device.enqueue(worker, copied(Stream.PROMOTION, 2, 2, 0))
            while ready := [lane for lane in device.runnable() if lane[0] == worker]:
                device.run(*ready[0])
        for worker in (0, 1):
            assert [device.content(Tier.SECOND, worker, block) for block in range(3)] == [
                *([Unreadable.UNWRITTEN] * 2),
                A,
            ]
            assert device.content(Tier.HOST, worker, 0) == A
        device.wipe()
        assert device.content(Tier.SECOND, 0, 2) is Unreadable.UNWRITTEN


@both_devices
def test_a_cascade_waits_for_its_fence_and_may_fail(opened: Open) -> None:
    with opened(1, 2, 2, gated=True, second_blocks=1) as device:
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 0),), -1, ()))
        device.enqueue(0, copied(Stream.CASCADE, 1, 0, 0))
        assert device.runnable() == ((0, Stream.STORE),)
        device.run(0, Stream.STORE)
        device.run_failing(0, Stream.CASCADE)
        assert device.collect(0, 1) == (0,)
        assert device.content(Tier.SECOND, 0, 0) is Unreadable.TORN


@both_devices
def test_without_a_second_tier_there_is_no_stream_and_no_block_of_one(opened: Open) -> None:
    with opened(1, 2, 2, gated=True) as device:
        with pytest.raises(ValueError, match="no second tier"):
            device.enqueue(0, copied(Stream.CASCADE, 1, 0, 0))
        with pytest.raises(NotRunnable, match="has no promotion stream"):
            device.run(0, Stream.PROMOTION)
        with pytest.raises(UnknownBlock, match="there is no second tier"):
            device.content(Tier.SECOND, 0, 0)
    with opened(1, 2, 2, gated=True, second_blocks=2) as device, pytest.raises(UnknownBlock, match="block 2 of 2"):
        device.enqueue(0, copied(Stream.PROMOTION, 1, 2, 0))


def test_what_is_written_is_in_the_file() -> None:
    files = MappedFiles()
    pattern = Pattern(0, 2, 64)
    tensors = KVTensors(pattern, 3, files.words("worker-0", (2, 3, pattern.words)))
    tensors.fill(1, B)
    (path,) = files.folder.iterdir()
    data = path.read_bytes()
    assert len(data) == 2 * 3 * 64
    assert data[:64] == bytes(64)
    assert data[64:128] == data[256:264] + data[72:128]
    words = [int.from_bytes(data[at : at + 8], "little") for at in (64, 72, 80, 256, 264, 272)]
    assert words == [MAGIC, 2, 0, MAGIC, 2, 0]
    files.close()
    assert tensors.decode(1) == B


@both_devices
def test_the_files_go_with_the_device(opened: Open) -> None:
    device = opened(1, 2, 2, second_blocks=2)
    assert device._files is not None
    folder: Path = device._files.folder
    assert len(list(folder.iterdir())) == 1
    device.close()
    assert not folder.exists()
    device.close()


@both_devices
def test_what_follows_a_promotion_waits_for_it_and_the_bytes_come_back_to_the_device(opened: Open) -> None:
    """Free-running: down to the file and back, each copy after the one before it, whatever the streams' pauses."""
    with opened(1, 2, 2, second_blocks=2, delays=3, layers=3) as device:
        device.enqueue(0, Compute(0, (Share((), ((0, A),)),), ()))
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 0),), 0, ()))
        device.enqueue(0, copied(Stream.CASCADE, 1, 0, 1))
        device.enqueue(0, copied(Stream.PROMOTION, 2, 1, 1))
        device.enqueue(0, copied(Stream.LOAD, 3, 1, 1))
        device.enqueue(0, Compute(1, (Share(((1, A),), ()),), (3,)))
        device.drain()
        assert device.misreads == []
        assert device.copied(0) == (0, 1, 2, 3)
        assert device.content(Tier.DEVICE, 0, 1) == A


@both_devices
def test_a_copy_to_the_file_that_is_made_to_fail_is_told_and_torn(opened: Open) -> None:
    with opened(1, 2, 2, second_blocks=2, faults=lambda worker, copy: (0,) if copy.job else ()) as device:
        device.enqueue(0, Compute(0, (Share((), ((0, A), (1, B))),), ()))
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 0), (1, 1)), 0, ()))
        device.enqueue(0, Copy(1, Stream.CASCADE, ((0, 0), (1, 1)), -1, (0,)))
        device.drain()
        assert device.collect(0, 1) == (0,)
        assert [device.content(Tier.SECOND, 0, block) for block in (0, 1)] == [Unreadable.TORN, B]


@both_devices
def test_what_is_made_to_fail_fails_at_its_gate_too(opened: Open) -> None:
    with opened(1, 2, 2, gated=True, second_blocks=2, faults=lambda worker, copy: (1,) if copy.job else ()) as device:
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 0), (1, 1)), -1, ()))
        device.enqueue(0, Copy(1, Stream.CASCADE, ((0, 0), (1, 1)), -1, (0,)))
        device.run(0, Stream.STORE)
        device.run(0, Stream.CASCADE)
        assert (device.collect(0, 0), device.collect(0, 1)) == ((), (1,))
        assert [device.content(Tier.SECOND, 0, block) for block in (0, 1)] == [Unreadable.UNWRITTEN, Unreadable.TORN]


@both_devices
def test_a_device_is_closed_with_copies_at_their_gates(opened: Open) -> None:
    device = opened(1, 2, 2, gated=True, second_blocks=1)
    device.enqueue(0, Copy(0, Stream.CASCADE, ((0, 0),), -1, ()))
    device.enqueue(0, Copy(1, Stream.PROMOTION, ((0, 1),), -1, ()))
    assert device.runnable() == ((0, Stream.CASCADE), (0, Stream.PROMOTION))
    device.close()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("kvoffload-w")] == []
