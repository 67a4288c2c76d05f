"""The host device's threads: real concurrency, and what happens when a stream fails, hangs or is interrupted.

Nothing here sleeps. Where threads must meet they meet at barriers and events, whose timeouts only end a failing test.
"""

import threading
from collections.abc import Callable

import pytest
from tests.impl.host_orders import PATIENCE, A, compute, gated, load, run_all, store

from kvoffload.devices.host import Host
from kvoffload.errors import Hang
from kvoffload.operations import (
    Content,
    Operation,
    Stream,
    Tier,
)


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
