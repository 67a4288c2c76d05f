"""What the device on CUDA promises beside right bytes: pinned memory, priorities, one call a job, gates that hold."""

import threading
import time

import pytest
from tests.gpu.devices import cuda

from kvoffload.devices import cuda_torch
from kvoffload.devices.cuda import Cuda
from kvoffload.devices.cuda_torch import TorchStream, driver
from kvoffload.errors import NotRunnable
from kvoffload.kv_tensors import torch
from kvoffload.operations import Compute, Content, Copy, Misread, Share, Stream, Tier

A = Content(1, 0)


def compute(step: int, block: int, jobs: tuple[int, ...] = ()) -> Compute:
    return Compute(step, (Share((), ((block, A),)),), jobs)


def opened(workers: int = 1, **options: object) -> Cuda:
    device = cuda(workers, 4, 4, **options)
    assert isinstance(device, Cuda)
    return device


def test_it_says_what_it_is() -> None:
    with opened(gated=True) as device:
        print(device.description)
        assert device.description.startswith("1 worker on NVIDIA")
        assert "cuStreamWaitValue32" in device.description


def test_the_host_tier_is_pinned_and_the_device_tier_on_the_gpu() -> None:
    with opened(2) as device:
        for shard in device._shards:
            assert shard.host.data.is_pinned()
            assert shard.staging.data.is_pinned()
            assert shard.device.device == torch.device("cuda", shard.gpu)


def test_every_lane_has_a_stream_of_its_own_and_copies_the_lower_priority() -> None:
    with opened(3) as device, opened(3) as other:
        lanes = [lane for each in (device, other) for lane in each._lanes]
        streams = [lane.stream for lane in lanes]
        assert all(isinstance(stream, TorchStream) for stream in streams)
        handles = [
            (stream._stream.device_index, stream._handle) for stream in streams if isinstance(stream, TorchStream)
        ]
        assert len(set(handles)) == 18
        for lane, stream in zip(lanes, streams, strict=True):
            assert isinstance(stream, TorchStream)
            assert stream._stream.priority == (-1 if lane.name is Stream.COMPUTE else 0)


def test_a_job_is_one_call_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    library = driver()._library
    if library is None or library.no_batches:
        pytest.skip(driver().copying)
    counts: list[int] = []
    copy_batch = library.copy_batch
    monkeypatch.setattr(library, "copy_batch", lambda *call: (counts.append(call[-1]), copy_batch(*call)))
    with opened(layers=5) as device:
        for step in range(4):
            device.enqueue(0, compute(step, step))
        device.drain()
        counts.clear()
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 3), (1, 2), (2, 1)), 3, ()))
        device.drain()
        assert counts == [15]
        assert [device.content(Tier.HOST, 0, block) for block in (1, 2, 3)] == [A, A, A]


def test_copies_one_by_one_are_right_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done where the driver has no call for many copies."""
    library = driver()._library
    if library is None:
        pytest.skip(driver().copying)
    monkeypatch.setattr(library, "no_batches", "the test was told so")
    with opened(layers=3) as device:
        device.enqueue(0, compute(0, 2))
        device.enqueue(0, Copy(0, Stream.STORE, ((2, 1),), 0, ()))
        device.enqueue(0, Copy(1, Stream.LOAD, ((1, 0),), 0, (0,)))
        device.drain()
        assert device.content(Tier.DEVICE, 0, 0) == A


def test_gates_hold_whatever_time_passes_and_let_one_operation_through() -> None:
    with opened(2, gated=True) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0, 0))
            device.enqueue(worker, Copy(0, Stream.STORE, ((0, 1), (0, 2)), 0, ()))
            device.enqueue(worker, Copy(1, Stream.LOAD, ((1, 1),), -1, (0,)))
        time.sleep(0.2)
        assert device.runnable() == ((0, Stream.COMPUTE), (1, Stream.COMPUTE))
        assert (device.computed(0), device.computed(1)) == (0, 0)
        for stream in (Stream.STORE, Stream.LOAD):
            with pytest.raises(NotRunnable):
                device.run(0, stream)
        device.run(0, Stream.COMPUTE)
        time.sleep(0.1)
        assert device.runnable() == ((0, Stream.STORE), (1, Stream.COMPUTE))
        device.run(0, Stream.STORE)
        device.run(0, Stream.LOAD)
        assert device.content(Tier.DEVICE, 0, 1) == A
        assert device.copied(0) == (0, 1)
        assert device.copied(1) == ()


def test_a_wait_that_cuda_was_not_told_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TorchStream, "wait", lambda self, event: None)
    with opened(gated=True) as device:
        device.enqueue(0, compute(0, 0))
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 1),), 0, ()))
        assert device.runnable() == ((0, Stream.COMPUTE), (0, Stream.STORE))


def test_a_read_that_is_not_ordered_after_a_slow_write_is_a_misread() -> None:
    with opened(layers=8, block_bytes=1 << 20) as device:
        device.enqueue(0, compute(0, 0))
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 0),), 0, ()))
        device.enqueue(0, Copy(1, Stream.LOAD, ((0, 1),), 0, (0,)))
        device.enqueue(0, Compute(1, (Share(((1, A),), ()),), ()))  # should say jobs=(1,)
        device.drain()
        assert [misread[:4] for misread in device.misreads] == [Misread(0, 1, 1, A, A)[:4]]


def test_it_can_be_used_from_a_thread_that_has_not_used_cuda() -> None:
    """Such a thread has no current context, which the calls of the driver library need."""
    seen: list[object] = []
    with opened(gated=True) as device:

        def use() -> None:
            device.enqueue(0, compute(0, 0))
            device.enqueue(0, Copy(0, Stream.STORE, ((0, 1),), 0, ()))
            device.run(0, Stream.COMPUTE)
            device.run(0, Stream.STORE)
            seen.append(device.content(Tier.HOST, 0, 1))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join(60)
    assert seen == [A]


def test_devices_come_and_go_without_memory_staying_behind() -> None:
    before = torch.cuda.memory_allocated(0)
    for _ in range(50):
        with opened(2, gated=True) as device:
            device.enqueue(0, compute(0, 0))
            device.enqueue(0, Copy(0, Stream.STORE, ((0, 1),), 0, ()))
    assert torch.cuda.memory_allocated(0) == before


def test_every_gpu_has_a_worker_where_there_are_several() -> None:
    count = len(driver().gpus)
    if count == 1:
        pytest.skip("one GPU")
    with opened(count) as device:
        assert [shard.gpu for shard in device._shards] == list(driver().gpus)
        for worker in range(count):
            device.enqueue(worker, compute(0, 0))
            device.enqueue(worker, Copy(0, Stream.STORE, ((0, 1),), 0, ()))
        device.drain()
        assert [device.content(Tier.HOST, worker, 1) for worker in range(count)] == [A] * count


def test_what_the_driver_can_do_is_what_is_said() -> None:
    can = cuda_torch.capabilities()
    assert (can.copying, can.gating) == (driver().copying, driver().gating)
    assert can.library is not None


def test_the_second_tier_is_a_file_that_threads_copy_to_and_from() -> None:
    """By a store, down, up again and by a load: each is ordered after the one before it, on the GPU or on the host."""
    with opened(layers=3, second_blocks=2, delays=1) as device:
        device.enqueue(0, compute(0, 2))
        device.enqueue(0, Copy(0, Stream.STORE, ((2, 1),), 0, ()))
        device.enqueue(0, Copy(1, Stream.CASCADE, ((1, 0),), -1, (0,)))
        device.enqueue(0, Copy(2, Stream.PROMOTION, ((0, 3),), -1, (1,)))
        device.enqueue(0, Copy(3, Stream.LOAD, ((3, 0),), 0, (2,)))
        device.enqueue(0, Compute(1, (Share(((0, A),), ()),), (3,)))
        device.drain()
        assert device.misreads == []
        assert device.content(Tier.SECOND, 0, 0) == A
        assert not device._shards[0].below[Tier.SECOND].data.is_pinned()


def test_a_worker_that_dies_runs_nothing_more_while_the_other_does() -> None:
    with opened(2, gated=True) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0, 0))
        device.die(0)
        assert device.runnable() == ((1, Stream.COMPUTE),)
        assert (device.computed(0), device.computed(1)) == (0, 0)
