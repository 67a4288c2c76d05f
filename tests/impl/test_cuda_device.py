"""The device on CUDA, on simulated streams: order, waits, gates, one registration, one call for each job.

Nothing here runs on a GPU. `tests/gpu` does, where there is one.
"""

import gc
import random

import pytest
from tests.impl.host_orders import Script, compute, load, run_all, store
from tests.impl.simulated_cuda import Call, SimulatedDriver, SimulatedStream

from kvoffload.devices.cuda import Cuda
from kvoffload.devices.device import Device
from kvoffload.devices.libcuda import CudaError
from kvoffload.errors import Hang, NotRunnable, UnknownBlock, UnknownJob
from kvoffload.operations import Compute, Content, Copy, Misread, Operation, Share, Stream, Tier, Unreadable

A, B, C = Content(1, 0), Content(2, 0), Content(3, 0)
UNWRITTEN = Unreadable.UNWRITTEN


def streams_of(driver: SimulatedDriver, worker: int = 0) -> dict[Stream, SimulatedStream]:
    """Of a device on one GPU, the first of this driver: one stream to look, then three for each worker."""
    return dict(zip(Stream, driver.streams[1 + 3 * worker :], strict=False))


def calls(driver: SimulatedDriver) -> list[Call]:
    """Those on the lanes' streams, of a device on one GPU."""
    return [call for call in driver.calls if call.stream != driver.streams[0].name]


def free(driver: SimulatedDriver, staging_blocks: int | None = None) -> Cuda:
    return Cuda(driver, 1, 4, 4, watchdog=5.0, staging_blocks=staging_blocks)


def gated(driver: SimulatedDriver, workers: int = 1) -> Cuda:
    return Cuda(driver, workers, 4, 4, gated=True, watchdog=5.0)


def test_it_is_a_device() -> None:
    device: Device = Cuda(SimulatedDriver(), 1, 1, 1)
    device.close()


# Memory, streams, calls.


@pytest.mark.parametrize("is_gated", [False, True])
def test_pinned_memory_is_registered_once_and_given_back_once(is_gated: bool) -> None:
    driver = SimulatedDriver(gpus=2)
    device = Cuda(driver, 3, 4, 5, layers=2, block_bytes=64, gated=is_gated)
    device.enqueue(0, compute(0, writes={0: A}, reads={1: B}))
    device.enqueue(0, store(0, 0, 0, step=0))
    driver.settle()
    assert [len(pinned) for pinned in driver.registered] == [3 * (2 * 5 * 8 + 2 * (2 + 6 * 4) * 8 + 3 * 8)]
    device.close()
    device.close()
    assert (len(driver.registered), driver.released) == (1, 1)


def test_copy_streams_have_the_low_priority_and_computes_the_high_one() -> None:
    driver = SimulatedDriver()
    with Cuda(driver, 2, 4, 4):
        priorities = [stream.priority for stream in driver.streams]
    assert priorities == [0, -1, 0, 0, -1, 0, 0]


def test_workers_take_turns_on_the_gpus() -> None:
    driver = SimulatedDriver(gpus=2)
    with Cuda(driver, 3, 4, 4) as device:
        assert [stream.gpu for stream in driver.streams] == [0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0]
        assert device.description == (
            "3 workers on Simulated GPU (cuda:0), Simulated GPU (cuda:1); copies: simulated; free-running"
        )
    driver = SimulatedDriver(gpus=3)
    with Cuda(driver, 2, 4, 4, gpus=[2]) as device:
        assert {stream.gpu for stream in driver.streams} == {2}
        assert device.description == "2 workers on Simulated GPU (cuda:2); copies: simulated; free-running"


def test_a_job_is_one_call_however_many_blocks_and_layers_it_has() -> None:
    driver = SimulatedDriver()
    with Cuda(driver, 1, 4, 4, layers=5) as device:
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 1), (1, 2), (2, 3)), -1, ()))
        device.enqueue(0, Copy(1, Stream.LOAD, ((1, 0), (2, 3)), -1, ()))
        assert calls(driver) == [Call("stream 2", 3, "gpu", "pinned"), Call("stream 3", 2, "pinned", "gpu")]


def test_a_copy_of_nothing_is_no_call_and_runs_all_the_same() -> None:
    driver = SimulatedDriver()
    with free(driver) as device:
        device.enqueue(0, Copy(0, Stream.STORE, (), -1, ()))
        device.drain()
        assert calls(driver) == []
        assert device.copied(0) == (0,)


def test_where_a_destination_is_named_twice_the_last_one_counts() -> None:
    driver = SimulatedDriver()
    with free(driver) as device:
        device.enqueue(0, compute(0, writes={0: A, 1: B}))
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 2), (1, 2), (0, 3)), 0, ()))
        device.drain()
        assert [device.content(Tier.HOST, 0, block) for block in range(4)] == [UNWRITTEN, UNWRITTEN, B, A]


def test_a_compute_reads_into_and_writes_from_pinned_memory_share_by_share() -> None:
    driver = SimulatedDriver()
    with free(driver) as device:
        shares = (Share((), ((0, A), (1, B))), Share(((0, A), (1, B)), ((0, C),)), Share(((0, A),), ()))
        device.enqueue(0, Compute(0, shares, ()))
        kinds = [(call.blocks, call.source, call.destination) for call in calls(driver)]
        assert kinds == [(2, "pinned", "gpu"), (2, "gpu", "pinned"), (1, "pinned", "gpu"), (1, "gpu", "pinned")]
        device.drain()
        assert device.misreads == [Misread(0, 0, 0, A, C)]
        assert device.content(Tier.DEVICE, 0, 0) == C
        assert device.content(Tier.DEVICE, 0, 1) == B


def test_staging_memory_is_used_again_and_a_compute_waits_on_the_host_for_it() -> None:
    driver = SimulatedDriver()
    with free(driver, staging_blocks=3) as device:
        for step in range(20):
            device.enqueue(0, compute(step, writes={step % 4: Content(step, 0), (step + 1) % 4: Content(-step, 0)}))
        assert len(calls(driver)) == 1
        device.enqueue(0, store(0, 3, 0, step=19))
        device.drain()
        assert device.computed(0) == 20
        assert device.content(Tier.HOST, 0, 0) == Content(19, 0)
        with pytest.raises(ValueError, match="needs 4 staging blocks, and there are 3"):
            device.enqueue(0, compute(20, writes=dict.fromkeys(range(4), A)))
        device.enqueue(0, compute(20))
        device.drain()
        assert device.computed(0) == 21


# Waits of streams, free.


def test_a_store_waits_in_its_stream_for_the_compute_that_writes_its_source() -> None:
    driver = SimulatedDriver()
    with free(driver) as device:
        device.enqueue(0, compute(0, writes={1: A}))
        device.enqueue(0, store(0, 1, 2, step=0))
        on = streams_of(driver)
        assert on[Stream.STORE].waits == [on[Stream.COMPUTE]]
        assert not on[Stream.STORE].step()
        assert on[Stream.COMPUTE].step()
        assert not on[Stream.STORE].step()
        driver.settle()
        assert device.copied(0) == (0,)
        assert device.content(Tier.HOST, 0, 2) == A


def test_a_load_waits_for_the_last_reader_of_its_destination_only() -> None:
    driver = SimulatedDriver()
    with free(driver) as device:
        device.enqueue(0, compute(0, writes={0: A}))
        device.enqueue(0, compute(1, reads={0: A}))
        device.enqueue(0, compute(2, writes={3: C}))
        device.enqueue(0, load(0, 0, 0, step=1))
        on = streams_of(driver)
        assert on[Stream.LOAD].waits == [on[Stream.COMPUTE]]
        steps = 0
        while not on[Stream.LOAD].step():
            assert on[Stream.COMPUTE].step()
            steps += 1
        assert on[Stream.COMPUTE].queue, "it waited for step 2 as well"
        assert steps > 2


def test_a_fence_is_a_wait_for_each_of_its_jobs_that_is_outstanding() -> None:
    driver = SimulatedDriver()
    with free(driver) as device:
        device.enqueue(0, store(0, 0, 0))
        device.drain()
        device.enqueue(0, store(7, 0, 0))
        device.enqueue(0, load(8, 1, 1))
        device.enqueue(0, compute(0, writes={0: B}, jobs=(0, 7, 8, 99)))
        device.enqueue(0, load(9, 1, 1, jobs=(7,)))
        on = streams_of(driver)
        assert on[Stream.COMPUTE].waits == [on[Stream.STORE], on[Stream.LOAD]]
        assert on[Stream.LOAD].waits == [on[Stream.STORE]]
        assert not on[Stream.COMPUTE].step()
        device.drain()
        assert (device.computed(0), sorted(device.copied(0))) == (1, [0, 7, 8, 9])


def test_what_waits_for_a_compute_that_was_not_enqueued_is_kept_on_the_host() -> None:
    """CUDA takes an event that was never recorded for one that happened."""
    driver = SimulatedDriver()
    with free(driver) as device:
        device.enqueue(0, store(0, 0, 0, step=0))
        device.enqueue(0, store(1, 1, 1))
        device.enqueue(0, load(2, 2, 2, jobs=(0,)))
        driver.settle()
        assert device.copied(0) == ()
        assert calls(driver) == []
        with pytest.raises(Hang, match="waits for what is not coming: w0 store: 0 in the stream, 2 not yet"):
            device.drain()
        device.enqueue(0, compute(0, writes={0: A}))
        assert len(calls(driver)) == 4
        device.drain()
        assert device.content(Tier.HOST, 0, 0) == A
        assert sorted(device.copied(0)) == [0, 1, 2]


def test_workers_wait_for_their_own_events_only() -> None:
    driver = SimulatedDriver()
    with Cuda(driver, 2, 4, 4) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0, writes={0: A}))
            device.enqueue(worker, store(0, 0, 0, step=0))
        for _ in range(100):
            for stream in streams_of(driver, 1).values():
                stream.step()
        assert (device.copied(0), device.copied(1)) == ((), (0,))
        assert (device.computed(0), device.computed(1)) == (0, 1)
        assert device.content(Tier.HOST, 1, 0) == A
        assert device.content(Tier.HOST, 0, 0) is UNWRITTEN


def test_a_forgotten_wait_is_a_misread_of_a_torn_block() -> None:
    torn = 0
    for seed in range(20):
        driver = SimulatedDriver(seed=seed, haste=1)
        with Cuda(driver, 1, 4, 4, layers=4) as device:
            device.enqueue(0, compute(0, writes={0: A}))
            device.enqueue(0, store(0, 0, 0, step=0))
            device.drain()
            device.enqueue(0, load(1, 0, 1))
            device.enqueue(0, compute(1, reads={1: A}))  # should say jobs=(1,)
            device.drain()
            torn += [misread.found for misread in device.misreads] == [Unreadable.TORN]
    assert torn > 3


@pytest.mark.parametrize("haste", [0, 1, 5])
@pytest.mark.parametrize("delays", [None, 1])
@pytest.mark.parametrize("gpus", [1, 2])
def test_free_streams_drain_to_where_the_script_says(gpus: int, delays: int | None, haste: int) -> None:
    scripts = [Script(seed, 120) for seed in (10, 11, 12)]
    driver = SimulatedDriver(gpus, haste=haste)
    with Cuda(driver, 3, 4, 4, layers=4, block_bytes=128, delays=delays, watchdog=60.0) as device:
        for operations in zip(*(script.operations for script in scripts), strict=True):
            for worker, operation in enumerate(operations):
                device.enqueue(worker, operation)
        device.drain()
        for worker, script in enumerate(scripts):
            script.verify(device, worker)
        device.drain()
    assert any(stream.paused for stream in driver.streams) is (delays is not None)
    assert all(0.0 <= pause <= 0.002 for stream in driver.streams for pause in stream.paused)


def test_operations_are_told_after_all_that_they_waited_for() -> None:
    seen: list[tuple[int, Stream]] = []
    driver = SimulatedDriver()

    def ran(worker: int, operation: Operation) -> None:
        seen.append((operation.step if isinstance(operation, Compute) else operation.job, operation.stream))

    with Cuda(driver, 1, 4, 4, on_run=ran) as device:
        device.enqueue(0, compute(0, writes={0: A}))
        device.enqueue(0, store(0, 0, 0, step=0))
        device.enqueue(0, load(1, 0, 1, jobs=(0,)))
        device.enqueue(0, compute(1, reads={1: A}, jobs=(1,)))
        device.enqueue(0, store(2, 1, 1, step=1))
        driver.settle()
        assert seen == []
        assert device.copied(0) == (0, 1, 2)
    assert seen == [(0, Stream.COMPUTE), (0, Stream.STORE), (1, Stream.LOAD), (1, Stream.COMPUTE), (2, Stream.STORE)]


# Gates.


@pytest.mark.parametrize("seed", range(3))
def test_gated_in_any_order_ends_where_the_script_says(seed: int) -> None:
    chance = random.Random(seed)
    scripts = [Script(2 * seed, 60), Script(2 * seed + 1, 60)]
    with gated(SimulatedDriver(gpus=1 + seed % 2), workers=2) as device:
        for worker, script in enumerate(scripts):
            for operation in script.operations:
                device.enqueue(worker, operation)
        while runnable := device.runnable():
            device.run(*chance.choice(runnable))
        for worker, script in enumerate(scripts):
            script.verify(device, worker)


def test_nothing_runs_until_its_gate_is_opened_and_one_opening_lets_one_through() -> None:
    driver = SimulatedDriver(haste=20)
    with gated(driver) as device:
        for job in (5, 3, 4):
            device.enqueue(0, store(job, 0, job - 3))
        device.enqueue(0, load(6, 0, 0))
        driver.settle()
        assert device.copied(0) == ()
        assert device.runnable() == ((0, Stream.STORE), (0, Stream.LOAD))
        device.run(0, Stream.STORE)
        driver.settle()
        assert device.copied(0) == (5,)
        assert run_all(device) == [(0, Stream.STORE), (0, Stream.STORE), (0, Stream.LOAD)]
        assert device.copied(0) == (5, 3, 4, 6)


def test_an_operation_gets_to_its_gate_only_after_what_it_waits_for() -> None:
    with gated(SimulatedDriver()) as device:
        device.enqueue(0, compute(0, writes={1: A}))
        device.enqueue(0, store(0, 1, 2, step=0))
        device.enqueue(0, compute(1, reads={1: A}, jobs=(0,)))
        assert device.runnable() == ((0, Stream.COMPUTE),)
        for stream in (Stream.STORE, Stream.LOAD):
            with pytest.raises(NotRunnable):
                device.run(0, stream)
        device.run(0, Stream.COMPUTE)
        assert device.runnable() == ((0, Stream.STORE),)
        device.run(0, Stream.STORE)
        assert run_all(device) == [(0, Stream.COMPUTE)]
        assert device.misreads == []


def test_a_stream_that_does_not_wait_as_it_should_is_seen_at_its_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe: waits that CUDA was not told show as runnable too early, if only the stream is given the time."""
    monkeypatch.setattr(SimulatedStream, "wait", lambda self, event: None)
    driver = SimulatedDriver()
    with gated(driver) as device:
        device.enqueue(0, compute(0, writes={1: A}))
        device.enqueue(0, store(0, 1, 2, step=0))
        with monkeypatch.context() as polling:
            polling.setattr(driver, "idle", streams_of(driver)[Stream.COMPUTE].step)
            assert device.runnable() == ((0, Stream.COMPUTE), (0, Stream.STORE))


def test_a_gate_that_is_never_reached_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = SimulatedDriver()
    device = Cuda(driver, 1, 4, 4, gated=True, watchdog=0.05)
    device.enqueue(0, store(0, 0, 0))
    with monkeypatch.context() as stuck:
        stuck.setattr(SimulatedStream, "step", lambda self: False)
        with pytest.raises(Hang, match="not at its gate: w0 store: 1 in the stream"):
            device.runnable()
        with pytest.raises(Hang, match="did not end: w0 store"):
            device.close()
    device.close()
    assert driver.released == 1


def test_a_gated_device_is_refused_where_streams_cannot_be_gated() -> None:
    with pytest.raises(ValueError, match="no gated device here: the simulation was told so"):
        gated(SimulatedDriver(gating=False))
    with Cuda(SimulatedDriver(gating=False), 1, 4, 4) as device:
        assert device.description == "1 worker on Simulated GPU (cuda:0); copies: simulated; free-running"


def test_a_gated_device_is_refused_where_its_streams_could_hold_each_other_back() -> None:
    with gated(SimulatedDriver(), workers=10):
        pass
    with pytest.raises(ValueError, match="11 workers on one GPU: they need 34 streams, and more than 32"):
        gated(SimulatedDriver(), workers=11)
    with gated(SimulatedDriver(gpus=2), workers=11):
        pass


def test_closing_opens_the_gates_lets_everything_run_and_gives_the_memory_back() -> None:
    driver = SimulatedDriver()
    device = gated(driver)
    device.enqueue(0, compute(0, writes={0: A}))
    device.enqueue(0, store(0, 0, 0, step=0))
    device.close()
    assert driver.released == 1
    for call in (device.runnable, lambda: device.copied(0), lambda: device.enqueue(0, compute(1))):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_a_device_that_nobody_closed_opens_its_gates_when_it_goes() -> None:
    """Else the process would wait for its streams for ever."""
    driver = SimulatedDriver()
    device = gated(driver)
    device.enqueue(0, store(0, 0, 0))
    driver.settle()
    assert any(stream.queue for stream in driver.streams)
    del device
    gc.collect()
    driver.settle()
    assert not any(stream.queue for stream in driver.streams)


def test_wiping_runs_what_is_left_and_makes_it_as_new() -> None:
    driver = SimulatedDriver()
    with gated(driver) as device:
        for _ in range(2):
            device.enqueue(0, compute(0, writes={0: A}, reads={1: B}))
            device.enqueue(0, store(0, 0, 0, step=0))
            device.enqueue(0, compute(1, jobs=(0,)))
            device.wipe()
            assert (device.computed(0), device.copied(0), device.misreads) == (0, (), [])
            assert {device.content(tier, 0, block) for tier in (Tier.DEVICE, Tier.HOST) for block in range(4)} == {
                UNWRITTEN
            }
        assert len(driver.registered) == 1


# Copies that fail.


def test_copies_that_are_to_fail_are_torn_in_stream_order_and_told_with_the_job() -> None:
    driver = SimulatedDriver()
    asked: list[tuple[int, int]] = []

    def faults(worker: int, copy: Copy) -> tuple[int, ...]:
        asked.append((worker, copy.job))
        return {0: (1,), 1: (), 2: (1, 0)}[copy.job]

    with Cuda(driver, 1, 4, 4, faults=faults) as device:
        device.enqueue(0, compute(0, writes={0: A, 1: B}))
        device.enqueue(0, Copy(0, Stream.STORE, ((0, 0), (1, 1)), 0, ()))
        device.enqueue(0, Copy(1, Stream.STORE, ((0, 2), (1, 3)), 0, ()))
        device.enqueue(0, Copy(2, Stream.LOAD, ((2, 2), (3, 3)), 0, (1,)))
        assert [call.blocks for call in calls(driver) if call.stream == "stream 2"] == [1, 1, 2]
        device.drain()
        assert [device.content(Tier.HOST, 0, block) for block in range(4)] == [A, Unreadable.TORN, A, B]
        assert [device.content(Tier.DEVICE, 0, block) for block in (2, 3)] == [Unreadable.TORN] * 2
        assert [device.collect(0, job) for job in (0, 1, 2)] == [(1,), (), (0, 1)]
    assert asked == [(0, 0), (0, 1), (0, 2)]


def test_a_copy_that_the_driver_refuses_fails_as_a_whole_and_the_stream_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with free(SimulatedDriver()) as device:
        device.enqueue(0, compute(0, writes={0: A}))
        with monkeypatch.context() as broken:

            def refused(*call: object) -> None:
                raise CudaError("cuMemcpyBatchAsync failed: CUDA_ERROR_INVALID_VALUE (1)")

            broken.setattr(SimulatedStream, "copy", refused)
            device.enqueue(0, Copy(0, Stream.STORE, ((0, 0), (1, 1)), 0, ()))
        device.enqueue(0, store(1, 0, 2, step=0))
        device.drain()
        assert [device.collect(0, job) for job in (0, 1)] == [(0, 1), ()]
        assert device.content(Tier.HOST, 0, 2) == A


def test_wiping_forgets_what_failed_and_copies_can_be_made_to_fail_again() -> None:
    with gated(SimulatedDriver()) as device:
        for _ in range(2):
            device.enqueue(0, store(0, 0, 0))
            device.enqueue(0, store(1, 1, 1))
            device.run(0, Stream.STORE)
            device.run_failing(0, Stream.STORE)
            assert device.collect(0, 0) == ()
            assert device.content(Tier.HOST, 0, 1) is Unreadable.TORN
            device.wipe()
        device.enqueue(0, store(1, 1, 1))
        device.run(0, Stream.STORE)
        assert device.collect(0, 1) == ()


# What is refused, and then changes nothing.


@pytest.mark.parametrize(
    "operation",
    [
        compute(0, writes={4: A}),
        compute(0, reads={-1: A}),
        store(0, 4, 0),
        store(0, 0, 6),
        load(0, 6, 0),
        load(0, 5, 4),
    ],
)
def test_blocks_outside_of_their_tier_are_refused(operation: Operation) -> None:
    driver = SimulatedDriver()
    with Cuda(driver, 1, 4, 6) as device:
        with pytest.raises(UnknownBlock):
            device.enqueue(0, operation)
        for tier, block in ((Tier.HOST, -1), (Tier.HOST, 6), (Tier.DEVICE, -1), (Tier.DEVICE, 4)):
            with pytest.raises(UnknownBlock):
                device.content(tier, 0, block)
        assert calls(driver) == []
        device.enqueue(0, store(0, 3, 5))
        device.drain()
        assert device.copied(0) == (0,)


def test_malformed_calls_are_refused() -> None:
    driver = SimulatedDriver(gpus=2)
    for sizes in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="must be at least 1"):
            Cuda(driver, *sizes)
    for gpus in ([], [2], [0, -1]):
        with pytest.raises(ValueError, match="cannot be had; there are"):
            Cuda(driver, 1, 1, 1, gpus=gpus)
    assert driver.registered == []
    with gated(SimulatedDriver()) as device:
        device.enqueue(0, store(0, 0, 0))
        with pytest.raises(ValueError, match="outstanding"):
            device.enqueue(0, load(0, 0, 0))
        with pytest.raises(ValueError, match="does not belong on the compute stream"):
            device.enqueue(0, Copy(1, Stream.COMPUTE, (), -1, ()))
        for worker in (-1, 1):
            with pytest.raises(IndexError):
                device.enqueue(worker, compute(0))
        with pytest.raises(UnknownJob):
            device.collect(0, 0)
        with pytest.raises(RuntimeError, match="free"):
            device.drain()
        assert device.runnable() == ((0, Stream.STORE),)
    with free(SimulatedDriver()) as device:
        for call in (device.runnable, device.wipe, lambda: device.run(0, Stream.LOAD)):
            with pytest.raises(RuntimeError, match="gated"):
                call()


def test_a_dead_worker_runs_and_tells_nothing_until_the_device_is_wiped() -> None:
    with gated(SimulatedDriver(), workers=2) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0, writes={0: A}))
            device.enqueue(worker, store(0, 0, 0))
            device.run(worker, Stream.COMPUTE)
            device.run(worker, Stream.STORE)
            device.enqueue(worker, load(1, 0, 1))
        device.die(0)
        assert (device.runnable(), device.copied(0), device.copied(1)) == (((1, Stream.LOAD),), (), (0,))
        with pytest.raises(UnknownJob):
            device.collect(0, 0)
        with pytest.raises(NotRunnable):
            device.run(0, Stream.LOAD)
        device.wipe()
        assert (device.runnable(), device.copied(0)) == ((), ())
        device.enqueue(0, compute(0, writes={0: A}))
        assert device.runnable() == ((0, Stream.COMPUTE),)
