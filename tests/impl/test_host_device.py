"""The host device: order, waits, gates, and what it refuses. Its threads are tested by themselves.

Nothing here sleeps.
"""

import random

import pytest
from tests.impl.host_orders import (
    PATIENCE,
    UNWRITTEN,
    UPPER,
    A,
    B,
    C,
    Script,
    compute,
    gated,
    load,
    run_all,
    store,
    streams,
)

from kvoffload.devices.device import Device
from kvoffload.devices.host import Host, State
from kvoffload.errors import NotRunnable, UnknownBlock, UnknownJob
from kvoffload.operations import (
    UPPER_STREAMS,
    Compute,
    Content,
    Copy,
    Misread,
    Operation,
    Share,
    Stream,
    Tier,
    Unreadable,
)


def test_it_is_a_device() -> None:
    device: Device = Host(1, 1, 1)
    device.close()


# Order and waits, gated.


def test_nothing_is_runnable_at_first_and_blocks_are_unwritten() -> None:
    with gated(workers=2) as device:
        assert device.runnable() == ()
        assert {device.content(tier, worker, 3) for tier in UPPER for worker in (0, 1)} == {UNWRITTEN}
        assert device.computed(1) == 0
        assert device.copied(1) == ()


def test_runnable_is_in_order_of_worker_and_stream() -> None:
    with gated(workers=2) as device:
        for worker in (1, 0):
            device.enqueue(worker, load(1, 0, 0))
            device.enqueue(worker, store(0, 0, 0))
            device.enqueue(worker, compute(0))
        assert device.runnable() == tuple((worker, stream) for worker in (0, 1) for stream in UPPER_STREAMS)


def test_a_stream_is_first_in_first_out() -> None:
    with gated() as device:
        for job in (5, 3, 4):
            device.enqueue(0, store(job, 0, job - 3))
        seen: list[tuple[int, ...]] = []
        while device.runnable():
            device.run(0, Stream.STORE)
            seen.append(device.copied(0))
        assert seen == [(5,), (5, 3), (5, 3, 4)]


def test_what_heads_a_stream_holds_back_what_follows() -> None:
    with gated() as device:
        device.enqueue(0, store(0, 0, 0, step=0))
        device.enqueue(0, store(1, 1, 1))
        assert device.runnable() == ()


def test_a_store_waits_for_the_compute_that_writes_its_source() -> None:
    with gated() as device:
        device.enqueue(0, store(0, 1, 2, step=0))
        device.enqueue(0, compute(0, writes={1: A}))
        assert device.runnable() == ((0, Stream.COMPUTE),)
        assert device.state(0, Stream.STORE) is State.WAITING
        assert device.state(0, Stream.COMPUTE) is State.GATE
        assert device.state(0, Stream.LOAD) is State.IDLE
        device.run(0, Stream.COMPUTE)
        assert device.computed(0) == 1
        assert device.runnable() == ((0, Stream.STORE),)
        device.run(0, Stream.STORE)
        assert device.content(Tier.HOST, 0, 2) == A
        assert device.runnable() == ()


def test_a_load_waits_for_the_last_reader_of_its_destination() -> None:
    with gated() as device:
        device.enqueue(0, compute(0, writes={0: A, 1: B}))
        device.enqueue(0, store(0, 0, 0, step=0))
        run_all(device)
        device.enqueue(0, compute(1, reads={1: B}))
        device.enqueue(0, load(1, 0, 1, step=1))
        assert device.runnable() == ((0, Stream.COMPUTE),)
        assert run_all(device) == [(0, Stream.COMPUTE), (0, Stream.LOAD)]
        assert device.content(Tier.DEVICE, 0, 1) == A
        assert device.misreads == []


def test_a_compute_waits_for_each_job_of_its_fence() -> None:
    with gated() as device:
        device.enqueue(0, compute(0, writes={0: A}))
        device.enqueue(0, store(7, 0, 0, step=0))
        device.enqueue(0, load(8, 1, 1))
        device.enqueue(0, compute(1, writes={0: B}, jobs=(7, 8)))
        device.run(0, Stream.COMPUTE)
        assert streams(device) == {Stream.STORE, Stream.LOAD}
        device.run(0, Stream.LOAD)
        assert streams(device) == {Stream.STORE}
        device.run(0, Stream.STORE)
        assert streams(device) == {Stream.COMPUTE}
        device.run(0, Stream.COMPUTE)
        assert device.content(Tier.HOST, 0, 0) == A
        assert device.content(Tier.DEVICE, 0, 0) == B


def test_a_copy_waits_for_its_step_and_its_jobs() -> None:
    with gated() as device:
        device.enqueue(0, store(0, 0, 0))
        device.enqueue(0, compute(0))
        device.enqueue(0, load(1, 0, 1, step=0, jobs=(0,)))
        assert streams(device) == {Stream.COMPUTE, Stream.STORE}
        device.run(0, Stream.STORE)
        assert streams(device) == {Stream.COMPUTE}
        device.run(0, Stream.COMPUTE)
        assert streams(device) == {Stream.LOAD}


def test_jobs_that_have_run_or_were_never_enqueued_hold_nothing_back() -> None:
    with gated() as device:
        device.enqueue(0, store(0, 0, 0))
        device.run(0, Stream.STORE)
        device.enqueue(0, compute(0, jobs=(0, 99)))
        device.collect(0, 0)
        device.enqueue(0, load(1, 0, 0, jobs=(0, 99)))
        assert streams(device) == {Stream.COMPUTE, Stream.LOAD}


def test_a_job_enqueued_later_is_not_waited_for() -> None:
    with gated() as device:
        device.enqueue(0, compute(0, jobs=(4,)))
        device.enqueue(0, store(4, 0, 0))
        assert streams(device) == {Stream.COMPUTE, Stream.STORE}


def test_a_job_that_waits_for_itself_never_runs() -> None:
    with gated() as device:
        device.enqueue(0, load(0, 0, 0, jobs=(0,)))
        assert device.runnable() == ()
        assert device.state(0, Stream.LOAD) is State.WAITING


def test_workers_wait_for_their_own_events_only() -> None:
    with gated(workers=2) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0, writes={0: A}))
            device.enqueue(worker, store(0, 0, 0, step=0))
            device.enqueue(worker, compute(1, writes={0: B}, jobs=(0,)))
        device.run(0, Stream.COMPUTE)
        device.run(0, Stream.STORE)
        assert device.runnable() == ((0, Stream.COMPUTE), (1, Stream.COMPUTE))
        assert (device.computed(0), device.computed(1)) == (1, 0)
        assert (device.copied(0), device.copied(1)) == ((0,), ())
        assert device.content(Tier.HOST, 1, 0) is UNWRITTEN
        device.run(1, Stream.COMPUTE)
        assert device.runnable() == ((0, Stream.COMPUTE), (1, Stream.STORE))


def test_a_forgotten_wait_shows_as_runnable_too_early_and_as_a_misread() -> None:
    with gated() as device:
        device.enqueue(0, compute(0, writes={0: A}))
        device.enqueue(0, store(0, 0, 0))  # should say step=0
        assert streams(device) == {Stream.COMPUTE, Stream.STORE}
        device.run(0, Stream.STORE)
        device.run(0, Stream.COMPUTE)
        device.enqueue(0, load(1, 0, 1, jobs=(0,)))
        device.enqueue(0, compute(1, reads={1: A}, jobs=(1,)))
        run_all(device)
        assert device.misreads == [Misread(0, 1, 1, A, UNWRITTEN)]


def test_misreads_name_what_was_found_and_do_not_stop_the_compute() -> None:
    with gated(workers=2) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0, writes={0: A, 1: B}))
        device.enqueue(1, compute(1, reads={0: B, 1: B, 2: C}, writes={3: C}))
        run_all(device)
        assert device.misreads == [Misread(1, 1, 0, B, A), Misread(1, 1, 2, C, UNWRITTEN)]
        assert device.content(Tier.DEVICE, 1, 3) == C


def test_content_of_an_older_generation_is_a_misread() -> None:
    with gated() as device:
        device.enqueue(0, compute(0, writes={0: Content(1, 0)}))
        device.enqueue(0, compute(1, reads={0: Content(1, 1)}))
        run_all(device)
        assert device.misreads == [Misread(0, 1, 0, Content(1, 1), Content(1, 0))]


def test_all_pairs_of_a_copy_are_copied() -> None:
    with gated() as device:
        device.enqueue(0, compute(0, writes={0: A, 1: B, 2: C}))
        device.enqueue(0, Copy(0, Stream.STORE, ((2, 0), (0, 3), (1, 1)), 0, ()))
        device.enqueue(0, Copy(1, Stream.LOAD, ((3, 3), (0, 1)), 0, (0,)))
        run_all(device)
        assert [device.content(Tier.HOST, 0, block) for block in range(4)] == [C, B, UNWRITTEN, A]
        assert [device.content(Tier.DEVICE, 0, block) for block in range(4)] == [A, C, C, A]


def test_shares_of_a_step_run_in_order() -> None:
    with gated() as device:
        shares = (Share((), ((0, A),)), Share(((0, A),), ((0, B),)))
        device.enqueue(0, Compute(0, shares, ()))
        run_all(device)
        assert device.misreads == []
        assert device.content(Tier.DEVICE, 0, 0) == B


def test_workers_hold_different_bytes_for_the_same_content() -> None:
    with gated(workers=2) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0, writes={0: A}))
        run_all(device)
        mine, theirs = (worker.tiers[Tier.DEVICE] for worker in device._workers)
        assert mine.data.tolist() != theirs.data.tolist()
        mine.data.copy_(theirs.data)
        assert device.content(Tier.DEVICE, 0, 0) is Unreadable.TORN
        assert device.content(Tier.DEVICE, 1, 0) == A


# What is refused, and then changes nothing.


def test_run_of_what_cannot_run_is_refused() -> None:
    with gated() as device:
        device.enqueue(0, store(0, 0, 0, step=0))
        for stream in Stream:
            with pytest.raises(NotRunnable):
                device.run(0, stream)
        assert device.copied(0) == ()
        device.enqueue(0, compute(0))
        assert run_all(device) == [(0, Stream.COMPUTE), (0, Stream.STORE)]


def test_collect_takes_each_job_once() -> None:
    with gated(workers=2) as device:
        for job in (0, 1, 2):
            device.enqueue(0, store(job, 0, job))
        run_all(device)
        device.collect(0, 1)
        assert device.copied(0) == (0, 2)
        for worker, job in ((0, 1), (0, 3), (1, 0)):
            with pytest.raises(UnknownJob):
                device.collect(worker, job)
        assert device.copied(0) == (0, 2)


@pytest.mark.parametrize(
    "operation",
    [
        compute(0, writes={4: A}),
        compute(0, reads={-1: A}),
        store(0, 4, 0),
        store(0, 0, 6),
        load(0, 6, 0),
        load(0, 5, 4),
        load(0, -1, 0),
    ],
)
def test_blocks_outside_of_their_tier_are_refused(operation: Operation) -> None:
    with Host(1, 4, 6, gated=True) as device:
        with pytest.raises(UnknownBlock):
            device.enqueue(0, operation)
        assert device.runnable() == ()
        device.enqueue(0, store(0, 3, 5))
        assert device.runnable() == ((0, Stream.STORE),)


def test_malformed_calls_are_refused() -> None:
    with gated() as device:
        device.enqueue(0, store(0, 0, 0))
        with pytest.raises(ValueError, match="outstanding"):
            device.enqueue(0, load(0, 0, 0))
        with pytest.raises(ValueError, match="does not belong on the compute stream"):
            device.enqueue(0, Copy(1, Stream.COMPUTE, (), -1, ()))
        for worker in (-1, 1):
            with pytest.raises(IndexError):
                device.enqueue(worker, compute(0))
        with pytest.raises(UnknownBlock):
            device.content(Tier.HOST, 0, -1)
        with pytest.raises(RuntimeError, match="free"):
            device.drain()
        assert device.runnable() == ((0, Stream.STORE),)
    with Host(1, 1, 1) as free:
        with pytest.raises(RuntimeError, match="gated"):
            free.runnable()
        with pytest.raises(RuntimeError, match="gated"):
            free.run(0, Stream.LOAD)


# Gated and free agree.


@pytest.mark.parametrize("seed", range(5))
def test_gated_in_any_order_ends_where_the_script_says(seed: int) -> None:
    chance = random.Random(seed)
    scripts = [Script(2 * seed, 60), Script(2 * seed + 1, 60)]
    with gated(workers=2) as device:
        for worker, script in enumerate(scripts):
            for operation in script.operations:
                device.enqueue(worker, operation)
        while runnable := device.runnable():
            device.run(*chance.choice(runnable))
        for worker, script in enumerate(scripts):
            script.verify(device, worker)


@pytest.mark.parametrize("delays", [None, 1, 2])
def test_free_streams_drain_to_where_the_script_says(delays: int | None) -> None:
    scripts = [Script(seed, 120) for seed in (10, 11, 12)]
    with Host(3, 4, 4, layers=4, block_bytes=4096, delays=delays, watchdog=PATIENCE) as device:
        for operations in zip(*(script.operations for script in scripts), strict=True):
            for worker, operation in enumerate(operations):
                device.enqueue(worker, operation)
        device.drain()
        for worker, script in enumerate(scripts):
            script.verify(device, worker)
        device.drain()
