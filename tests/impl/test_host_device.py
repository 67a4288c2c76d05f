"""The host device: order, waits, gates, real concurrency, and what happens when a stream fails or hangs.

Nothing here sleeps. Where threads must meet they meet at barriers and events, whose timeouts only end a failing test.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kvoffload.devices.device import Device
from kvoffload.devices.host import Host, State
from kvoffload.errors import Hang, NotRunnable, UnknownBlock, UnknownJob
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

UPPER = (Tier.DEVICE, Tier.HOST)
PATIENCE = 30.0
A, B, C = Content(1, 0), Content(2, 0), Content(3, 0)
UNWRITTEN = Unreadable.UNWRITTEN


def compute(
    step: int,
    writes: dict[int, Content] | None = None,
    reads: dict[int, Content] | None = None,
    jobs: tuple[int, ...] = (),
) -> Compute:
    return Compute(step, (Share(tuple((reads or {}).items()), tuple((writes or {}).items())),), jobs)


def store(job: int, device: int, host: int, step: int = -1, jobs: tuple[int, ...] = ()) -> Copy:
    return Copy(job, Stream.STORE, ((device, host),), step, jobs)


def load(job: int, host: int, device: int, step: int = -1, jobs: tuple[int, ...] = ()) -> Copy:
    return Copy(job, Stream.LOAD, ((host, device),), step, jobs)


@contextmanager
def gated(workers: int = 1, watchdog: float = PATIENCE) -> Iterator[Host]:
    with Host(workers, 4, 4, gated=True, watchdog=watchdog) as device:
        yield device


def streams(device: Host, worker: int = 0) -> set[Stream]:
    return {stream for at, stream in device.runnable() if at == worker}


def run_all(device: Device) -> list[tuple[int, Stream]]:
    order: list[tuple[int, Stream]] = []
    while runnable := device.runnable():
        device.run(*runnable[0])
        order.append(runnable[0])
    return order


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


class Script:
    """A random, correctly ordered workload for one worker, and what every block must hold in the end."""

    def __init__(self, seed: int, length: int) -> None:
        chance = random.Random(seed)
        self.operations: list[Operation] = []
        self.tiers: dict[Tier, dict[int, Content]] = {Tier.DEVICE: {}, Tier.HOST: {}}
        self.jobs: dict[Stream, list[int]] = {Stream.STORE: [], Stream.LOAD: []}
        device, host = self.tiers[Tier.DEVICE], self.tiers[Tier.HOST]
        step = job = 0
        fence: list[int] = []
        for _ in range(length):
            kind = chance.choice([stream for stream in UPPER_STREAMS if self._possible(stream)])
            if kind is Stream.COMPUTE:
                block = chance.randrange(4)
                reads = {other: content for other, content in device.items() if other != block}
                device[block] = Content(chance.randrange(1000), chance.randrange(2))
                self.operations.append(compute(step, {block: device[block]}, reads, tuple(fence)))
                step, fence = step + 1, []
                continue
            source, target = (device, host) if kind is Stream.STORE else (host, device)
            pair = (chance.choice(sorted(source)), chance.randrange(4))
            target[pair[1]] = source[pair[0]]
            self.operations.append(Copy(job, kind, (pair,), step - 1, tuple(range(job))))
            self.jobs[kind].append(job)
            fence.append(job)
            job += 1

    def _possible(self, stream: Stream) -> bool:
        source = {Stream.COMPUTE: None, Stream.STORE: Tier.DEVICE, Stream.LOAD: Tier.HOST}[stream]
        return source is None or bool(self.tiers[source])

    def verify(self, device: Device, worker: int) -> None:
        assert device.misreads == []
        for tier, blocks in self.tiers.items():
            for block in range(4):
                assert device.content(tier, worker, block) == blocks.get(block, UNWRITTEN)
        ran = device.copied(worker)
        for jobs in self.jobs.values():
            assert [job for job in ran if job in set(jobs)] == jobs


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


# Threads.


def meeting(parties: int) -> Callable[[int, Operation], None]:
    """A hook that lets no operation go on before `parties` of them are running."""
    barrier = threading.Barrier(parties)

    def meet(worker: int, operation: Operation) -> None:
        barrier.wait(PATIENCE)

    return meet


def test_two_streams_of_a_worker_run_at_the_same_time() -> None:
    with Host(1, 4, 4, on_run=meeting(2), watchdog=PATIENCE) as device:
        device.enqueue(0, store(0, 0, 0))
        device.enqueue(0, load(1, 1, 1))
        device.drain()
        assert sorted(device.copied(0)) == [0, 1]


def test_all_streams_of_all_workers_run_at_the_same_time() -> None:
    with Host(3, 4, 4, layers=4, block_bytes=1 << 16, on_run=meeting(9), watchdog=PATIENCE) as device:
        for round_ in range(3):
            for worker in range(3):
                device.enqueue(worker, compute(round_, writes={round_: A}))
                device.enqueue(worker, store(2 * round_, 3, 3))
                device.enqueue(worker, load(2 * round_ + 1, 0, 3))
            device.drain()
        assert [device.computed(worker) for worker in range(3)] == [3, 3, 3]
        assert [sorted(device.copied(worker)) for worker in range(3)] == [list(range(6))] * 3


def test_a_gated_device_runs_one_operation_at_a_time_each_on_its_own_thread() -> None:
    seen: list[tuple[str, int, Stream]] = []
    running = threading.Lock()

    def watch(worker: int, operation: Operation) -> None:
        assert running.acquire(blocking=False)
        seen.append((threading.current_thread().name, worker, operation.stream))
        running.release()

    with Host(2, 1, 1, gated=True, on_run=watch) as device:
        for worker in (0, 1):
            device.enqueue(worker, compute(0))
            device.enqueue(worker, store(0, 0, 0))
            device.enqueue(worker, load(1, 0, 0))
        assert seen == []
        order = run_all(device)
    assert seen == [(f"kvoffload-w{worker}-{stream}", worker, stream) for worker, stream in order]
    assert len({name for name, _, _ in seen}) == 6


class Broken(Exception):
    pass


def broken(worker: int, operation: Operation) -> None:
    raise Broken(f"{operation.stream}")


def test_an_exception_in_a_gated_stream_surfaces_in_run_and_after() -> None:
    device = Host(1, 4, 4, gated=True, on_run=broken)
    device.enqueue(0, store(0, 0, 0))
    with pytest.raises(Broken, match="store"):
        device.run(0, Stream.STORE)
    again: tuple[Callable[[], object], ...] = (
        device.runnable,
        lambda: device.run(0, Stream.STORE),
        lambda: device.enqueue(0, compute(0)),
        lambda: device.copied(0),
        lambda: device.collect(0, 0),
        lambda: device.computed(0),
        lambda: device.content(Tier.HOST, 0, 0),
        lambda: device.state(0, Stream.STORE),
        device.drain,
    )
    for call in again:
        with pytest.raises(Broken):
            call()
    device.close()


def test_an_exception_in_a_free_stream_surfaces_while_draining() -> None:
    device = Host(2, 4, 4, on_run=broken)
    device.enqueue(1, load(0, 0, 0))
    with pytest.raises(Broken, match="load"):
        device.drain()
    device.close()


def test_an_exception_that_no_call_raised_is_raised_by_close_with_the_others_noted() -> None:
    meet = meeting(3)

    def both(worker: int, operation: Operation) -> None:
        meet(worker, operation)
        broken(worker, operation)

    device = Host(1, 4, 4, on_run=both, watchdog=PATIENCE)
    device.enqueue(0, store(0, 0, 0))
    device.enqueue(0, load(1, 0, 0))
    meet(0, store(0, 0, 0))  # both are running, and nothing failed before
    with pytest.raises(Broken) as caught:
        device.close()
    assert len(caught.value.__notes__) == 1
    assert "failed too" in caught.value.__notes__[0]
    device.close()


def test_content_that_fits_no_block_surfaces() -> None:
    with gated() as device:
        device.enqueue(0, compute(0, writes={0: Content(1 << 63, 0)}))
        with pytest.raises(ValueError, match="64-bit"):
            device.run(0, Stream.COMPUTE)


def test_a_stream_that_does_not_come_to_rest_is_a_hang() -> None:
    go_on = threading.Event()

    def stuck(worker: int, operation: Operation) -> None:
        assert go_on.wait(PATIENCE)

    device = Host(1, 4, 4, gated=True, watchdog=0.05, on_run=stuck)
    device.enqueue(0, store(3, 0, 0))
    with pytest.raises(Hang, match="w0 store: running"):
        device.run(0, Stream.STORE)
    with pytest.raises(Hang):
        device.runnable()
    with pytest.raises(Hang, match="did not end"):
        device.close()
    go_on.set()
    device._watchdog = PATIENCE
    device.close()


def test_draining_what_waits_for_nothing_that_comes_is_a_hang_at_once() -> None:
    with Host(1, 4, 4, watchdog=3600.0) as device:
        device.enqueue(0, compute(0))
        device.enqueue(0, store(0, 0, 0, step=1))
        with pytest.raises(Hang, match="w0 store: waiting"):
            device.drain()
        device.enqueue(0, compute(1))
        device.drain()
        assert device.copied(0) == (0,)


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("kvoffload-")}


@pytest.mark.parametrize("is_gated", [False, True])
def test_close_ends_all_threads_in_any_state_and_may_be_repeated(is_gated: bool) -> None:
    device = Host(2, 4, 4, gated=is_gated)
    assert len(threads()) == 6
    device.enqueue(0, store(0, 0, 0, step=0))
    device.enqueue(0, load(1, 0, 0))
    device.close()
    assert threads() == set()
    device.close()
    for call in (lambda: device.enqueue(0, compute(0)), lambda: device.copied(0), device.runnable, device.drain):
        with pytest.raises(RuntimeError):
            call()


def test_closing_ends_pauses_early() -> None:
    """Closing completes the running operation, leaves the others, and waits for no pause."""
    running, go_on = threading.Event(), threading.Event()

    def announce(worker: int, operation: Operation) -> None:
        running.set()
        assert go_on.wait(PATIENCE)

    device = Host(1, 4, 4, delays=0, on_run=announce)
    device.enqueue(0, store(0, 0, 0))
    device.enqueue(0, store(1, 1, 1))
    assert running.wait(PATIENCE)
    closer = threading.Thread(target=device.close)
    closer.start()
    assert device._closing.wait(PATIENCE)
    go_on.set()
    closer.join(PATIENCE)
    assert not closer.is_alive()
    assert threads() == set()


def test_an_interrupt_while_the_threads_are_started_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    right = threading.Thread.start
    started: list[threading.Thread] = []

    def start(self: threading.Thread) -> None:
        if len(started) == 2:
            raise KeyboardInterrupt
        right(self)
        started.append(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        Host(1, 1, 1)
    assert [thread.is_alive() for thread in started] == [False, False]
