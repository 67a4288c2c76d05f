"""The device made of CPU memory and threads: real bytes, real copies, one thread per worker and stream.

Threads share one lock, which no operation holds while it runs. A thread is at any time in one observable `State`. Three
of them are states of rest, each with the condition that ends it; a thread that rests and whose condition does not hold
is quiescent. This is decided from the state itself and never from who woke up already, so that it cannot be early.

What an operation waits for is fixed when it is enqueued: its own wait lists, nothing inferred. In gated mode it waits
for that first and only then arrives at its gate. Hence a wait that the engine forgot shows as an operation that is
runnable too early.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from enum import StrEnum
from types import TracebackType
from typing import Self

from kvoffload.devices.host_copies import copy_blocks
from kvoffload.devices.mapped_file import MappedFiles
from kvoffload.devices.wellformed import check
from kvoffload.errors import Hang, NotRunnable, UnknownBlock, UnknownJob
from kvoffload.kv_tensors import KVTensors, Pattern
from kvoffload.operations import (
    ENDS,
    STREAMS,
    UPPER_STREAMS,
    Compute,
    Content,
    Copy,
    Misread,
    Operation,
    Stream,
    Tier,
    Unreadable,
)


class State(StrEnum):
    """What a stream's thread does. All but RUNNING are states of rest."""

    IDLE = "idle"
    WAITING = "waiting for an event"
    GATE = "at its gate"
    RUNNING = "running"
    ENDED = "ended"


class _Entry:
    """An operation in its stream, and those of its jobs that were outstanding when it was enqueued."""

    __slots__ = ("awaited", "operation")

    def __init__(self, operation: Operation, awaited: frozenset[int]) -> None:
        self.operation = operation
        self.awaited = awaited


class _Worker:
    """One worker's memory, and what has happened on it."""

    def __init__(
        self, number: int, pattern: Pattern, device_blocks: int, host_blocks: int, second: KVTensors | None
    ) -> None:
        self.number = number
        self.tiers = {Tier.DEVICE: KVTensors(pattern, device_blocks), Tier.HOST: KVTensors(pattern, host_blocks)}
        if second is not None:
            self.tiers[Tier.SECOND] = second
        self.blocks = {tier: tensors.blocks for tier, tensors in self.tiers.items()}
        self.lanes: dict[Stream, _Lane] = {}
        self.computed = 0
        self.outstanding: set[int] = set()
        self.copied: list[int] = []
        self.failed: dict[int, tuple[int, ...]] = {}
        self.dead = False


class _Lane:
    """One stream of one worker, and the thread that serves it. All of it is guarded by the device's lock."""

    def __init__(self, worker: _Worker, stream: Stream, lock: threading.Lock) -> None:
        self.worker = worker
        self.stream = stream
        self.queue: deque[_Entry] = deque()
        self.state = State.RUNNING
        self.released = False
        self.failing: Collection[int] = ()
        self.wake = threading.Condition(lock)
        self.thread: threading.Thread | None = None

    def may_go_on(self) -> bool:
        """Whether what the thread rests for has happened. A running thread goes on by itself, a dead worker's rests."""
        if self.worker.dead:
            return False
        match self.state:
            case State.IDLE:
                return bool(self.queue)
            case State.WAITING:
                return self.events_happened()
            case State.GATE:
                return self.released
            case State.RUNNING:
                return True
            case State.ENDED:
                return False

    @property
    def at_gate(self) -> bool:
        return self.state is State.GATE and not self.worker.dead

    def events_happened(self) -> bool:
        """Whether everything that the oldest operation waits for has happened on this worker."""
        entry = self.queue[0]
        step = entry.operation.step if isinstance(entry.operation, Copy) else -1
        return self.worker.computed > step and self.worker.outstanding.isdisjoint(entry.awaited)

    def __str__(self) -> str:
        name = f"w{self.worker.number} {self.stream}: {self.state}"
        return f"{name}, {len(self.queue)} queued, oldest {self.queue[0].operation}" if self.queue else name


class Host:
    """A `Device` on CPU tensors.

    One thread uses it (the engine, the driver); the streams' threads are its own. An exception in one of those ends
    that stream, and is raised by every later call but `close`, which raises it only if no call did. Except in the copy
    of one block: that is a failed copy, which `collect` tells of, and the stream goes on.
    """

    def __init__(
        self,
        workers: int,
        device_blocks: int,
        host_blocks: int,
        *,
        layers: int = 2,
        block_bytes: int = 64,
        gated: bool = False,
        delays: int | None = None,
        watchdog: float = 30.0,
        on_run: Callable[[int, Operation], None] | None = None,
        faults: Callable[[int, Copy], Collection[int]] | None = None,
        second_blocks: int = 0,
    ) -> None:
        """block_bytes  bytes of one block in one layer: a multiple of 8, at least 32

        delays    seed of random pauses of up to 2 ms before operations and between the layers of a copy; None: none.
                  Pauses change when things happen and never what is right.
        watchdog  seconds after which a stream that neither rests nor ends is a `Hang`
        on_run    called with worker and operation on the stream's own thread, when the operation has begun to run
        faults    asked likewise of every copy: the positions of its pairs that are to fail. None: none are made to
        second_blocks  blocks of a second tier on each worker (count): files in a temporary folder, mapped into memory.
                       OSError if they cannot be made
        """
        self.workers = workers
        self.second_blocks = second_blocks
        self.gated = gated
        self.misreads: list[Misread] = []
        self._delays = delays
        self._watchdog = watchdog
        self._on_run = on_run
        self._faults = faults
        self._lock = threading.Lock()
        self._quiescent = threading.Condition(self._lock)
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._failure_raised = False
        self._files: MappedFiles | None = None
        self._workers: list[_Worker] = []
        self._lanes: list[_Lane] = []
        try:
            if second_blocks:
                self._files = MappedFiles()
            for rank in range(workers):
                pattern = Pattern(rank, layers, block_bytes)
                self._workers.append(_Worker(rank, pattern, device_blocks, host_blocks, self._second(rank, pattern)))
            for worker in self._workers:
                for stream in STREAMS if second_blocks else UPPER_STREAMS:
                    lane = _Lane(worker, stream, self._lock)
                    worker.lanes[stream] = lane
                    self._lanes.append(lane)
            for lane in self._lanes:
                name = f"kvoffload-w{lane.worker.number}-{lane.stream}"
                lane.thread = threading.Thread(target=self._serve, args=(lane,), name=name, daemon=True)
                lane.thread.start()
        except BaseException:  # an interrupt above all: whoever does not get the device cannot close it
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The seam: see `Device`.

    def enqueue(self, worker: int, operation: Operation) -> None:
        """Put one operation at the end of its stream on one worker. Returns at once.

        It waits for those of its `jobs` that are outstanding on this worker now; a job that has run or was never
        enqueued is waited for no more. Raises UnknownBlock for a block outside of its tier, ValueError for a copy on
        the compute stream or of a job that is outstanding already, IndexError for an unknown worker.
        """
        with self._lock:
            at = self._worker(worker)
            check(operation, at.blocks, at.outstanding)
            if isinstance(operation, Copy):
                at.outstanding.add(operation.job)
            lane = at.lanes[operation.stream]
            lane.queue.append(_Entry(operation, frozenset(operation.jobs) & at.outstanding))
            if lane.state is State.IDLE:
                lane.wake.notify()

    def copied(self, worker: int) -> tuple[int, ...]:
        """Jobs whose copies have run on this worker and were not collected, in the order in which they ran."""
        with self._lock:
            return self._told(self._worker(worker))

    def collect(self, worker: int, job: int) -> tuple[int, ...]:
        """Take one job out of `copied`; answers which of its pairs failed. UnknownJob if it is not there."""
        with self._lock:
            at = self._worker(worker)
            if job not in self._told(at):
                raise UnknownJob(f"job {job} is not among those copied on worker {worker}")
            at.copied.remove(job)
            return at.failed.pop(job, ())

    def computed(self, worker: int) -> int:
        """How many computes have run on this worker, counted from the start."""
        with self._lock:
            return self._worker(worker).computed

    def runnable(self) -> tuple[tuple[int, Stream], ...]:
        """Gated only (else RuntimeError): the streams at their gate, once all streams are quiescent.

        Raises Hang if they are not quiescent before the watchdog's deadline.
        """
        with self._lock:
            self._require(gated=True)
            self._await_quiescence()
            return tuple((lane.worker.number, lane.stream) for lane in self._lanes if lane.at_gate)

    def run(self, worker: int, stream: Stream) -> None:
        """Gated only (else RuntimeError): let the operation at this stream's gate run; return when it has run and all
        streams are quiescent again.

        Raises NotRunnable if none is at the gate, and Hang if the streams are not quiescent before the deadline.
        """
        self._release(worker, stream, ())

    def run_failing(self, worker: int, stream: Stream, pairs: Collection[int] | None = None) -> None:
        """As `run`, and the copies of the pairs at these positions (None: of all) are made to fail.

        Raises NotRunnable also if the operation at the gate is no copy.
        """
        self._release(worker, stream, pairs)

    def _release(self, worker: int, stream: Stream, failing: Collection[int] | None) -> None:
        with self._lock:
            self._require(gated=True)
            lane = self._worker(worker).lanes.get(stream)
            self._await_quiescence()
            if lane is None:
                raise NotRunnable(f"worker {worker} has no {stream} stream: there is no second tier")
            if not lane.at_gate:
                raise NotRunnable(str(lane))
            operation = lane.queue[0].operation
            if isinstance(operation, Copy):
                lane.failing = range(len(operation.pairs)) if failing is None else failing
            elif failing is None or failing:
                raise NotRunnable(f"no copy that could fail: {lane}")
            lane.released = True
            lane.wake.notify()
            self._await_quiescence()

    def die(self, worker: int) -> None:
        """Gated only (else RuntimeError): the worker's streams rest from now on, and what it has copied is told no
        more. What is enqueued there stays. Raises Hang if the streams are not quiescent before the deadline."""
        with self._lock:
            self._require(gated=True)
            self._await_quiescence()
            self._worker(worker).dead = True

    def content(self, tier: Tier, worker: int, block: int) -> Content | Unreadable:
        """What this worker's copy of a block holds now. Raises UnknownBlock.

        Gated: always well defined, since nothing runs between two calls. Free: no lock keeps running operations from
        the bytes, so ask for blocks that none of them writes, or after `drain`.
        """
        with self._lock:
            tensors = self._worker(worker).tiers.get(tier)
        if tensors is None:
            raise UnknownBlock(f"there is no {tier} tier, and so no block {block} of it")
        return tensors.decode(block)

    def close(self) -> None:
        """End all threads (an operation that runs is completed, the others are not begun), drop the tensors and remove
        the files of the second tier.

        Idempotent. Raises Hang if a thread does not end before the watchdog's deadline (closing again tries again), and
        a stream's failure that no call has raised before.
        """
        with self._lock:
            self._closing.set()
            for lane in self._lanes:
                lane.wake.notify()
        deadline = time.monotonic() + self._watchdog
        for lane in self._lanes:
            if lane.thread is not None and lane.thread.ident is not None:
                lane.thread.join(max(0.0, deadline - time.monotonic()))
                if lane.thread.is_alive():
                    raise Hang(f"did not end within {self._watchdog} s: {lane}")
                lane.thread = None
        self._lanes.clear()
        self._workers.clear()
        if self._files is not None:
            self._files.close()
        if self._failure is not None and not self._failure_raised:
            self._failure_raised = True
            raise self._failure

    # Beyond the seam: what tests and drivers of this device also need.

    def drain(self) -> None:
        """Free only (else RuntimeError): wait until all operations have run.

        Raises Hang if the streams are not quiescent before the watchdog's deadline, and at once if they are but wait
        for what can no longer happen.
        """
        with self._lock:
            self._require(gated=False)
            self._await_quiescence()
            stuck = [str(lane) for lane in self._lanes if lane.queue]
            if stuck:
                raise Hang("everything left waits for what is not coming: " + "; ".join(stuck))

    def wipe(self) -> None:
        """Gated only (else RuntimeError): run what is left, then be as new: every block UNWRITTEN, nothing collected.

        Workers that died live again, and run what they had left. Cheaper than another device, whose threads would have
        to be started. Raises Hang if what is left cannot run.
        """
        with self._lock:
            for dead in [worker for worker in self._workers if worker.dead]:
                dead.dead = False
                for lane in dead.lanes.values():
                    lane.wake.notify()
        while gates := self.runnable():
            self.run(*gates[0])
        with self._lock:
            stuck = [str(lane) for lane in self._lanes if lane.queue]
            if stuck:
                raise Hang("everything left waits for what is not coming: " + "; ".join(stuck))
            for worker in self._workers:
                worker.computed = 0
                worker.copied.clear()
                worker.failed.clear()
                for tensors in worker.tiers.values():
                    tensors.blank()
            self.misreads.clear()

    def tensors(self, tier: Tier, worker: int) -> KVTensors:
        """The memory of a tier on this worker. Raises KeyError if there is no such tier."""
        with self._lock:
            return self._worker(worker).tiers[tier]

    def state(self, worker: int, stream: Stream) -> State:
        """What this stream's thread does now. At quiescence it stays so until the next call."""
        with self._lock:
            return self._worker(worker).lanes[stream].state

    def _second(self, worker: int, pattern: Pattern) -> KVTensors | None:
        """A worker's second tier, if there is one."""
        if self._files is None:
            return None
        shape = (pattern.layers, self.second_blocks, pattern.words)
        return KVTensors(pattern, self.second_blocks, self._files.words(f"worker-{worker}", shape))

    # Under the lock, on the caller's thread.

    def _worker(self, worker: int) -> _Worker:
        """Raises what a stream raised, RuntimeError after `close`, IndexError for an unknown worker."""
        self._raise_failure()
        if self._closing.is_set():
            raise RuntimeError("the device is closed")
        if not 0 <= worker < self.workers:
            raise IndexError(f"worker {worker} of {self.workers}")
        return self._workers[worker]

    def _told(self, worker: _Worker) -> tuple[int, ...]:
        """What the worker has copied, if it can still say so."""
        return () if worker.dead else tuple(worker.copied)

    def _require(self, *, gated: bool) -> None:
        self._raise_failure()
        if self.gated is not gated:
            raise RuntimeError(f"only for a {'gated' if gated else 'free'} device")
        if self._closing.is_set():
            raise RuntimeError("the device is closed")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self._failure_raised = True
            raise self._failure

    def _await_quiescence(self) -> None:
        if not self._quiescent.wait_for(self._is_quiescent, self._watchdog):
            self._raise_failure()
            awake = [str(lane) for lane in self._lanes if lane.may_go_on()]
            raise Hang(f"not quiescent within {self._watchdog} s: " + "; ".join(awake))
        self._raise_failure()

    def _is_quiescent(self) -> bool:
        return not any(lane.may_go_on() for lane in self._lanes)

    # On the streams' threads.

    def _serve(self, lane: _Lane) -> None:
        """The life of a stream's thread. Whatever it raises is kept for the caller."""
        pause = self._pauses(lane)
        try:
            with self._lock:
                operation = self._next(lane)
            while operation is not None:
                failed = self._perform(lane, operation, pause)
                with self._lock:
                    self._happened(lane, operation, failed)
                    operation = self._next(lane)
        except BaseException as failure:  # noqa: BLE001 - not handled here: raised again on the caller's thread
            with self._lock:
                if self._failure is None:
                    self._failure = failure
                else:
                    self._failure.add_note(f"{threading.current_thread().name} failed too: {failure!r}")
        with self._lock:
            self._settle(lane, State.ENDED)

    def _next(self, lane: _Lane) -> Operation | None:
        """The operation to run next, once it may run. None: the device closes."""
        self._rest(lane, State.IDLE)
        if not self._closing.is_set():
            self._rest(lane, State.WAITING)
        if self.gated and not self._closing.is_set():
            self._rest(lane, State.GATE)
            lane.released = False
        return None if self._closing.is_set() else lane.queue[0].operation

    def _rest(self, lane: _Lane, state: State) -> None:
        """Be in this state until what it rests for has happened or the device closes."""
        lane.state = state
        if not lane.may_go_on():  # else nothing is quiescent, and nobody need look
            self._settle(lane, state)
            while not (lane.may_go_on() or self._closing.is_set()):
                lane.wake.wait()
        lane.state = State.RUNNING

    def _settle(self, lane: _Lane, state: State) -> None:
        lane.state = state
        if self._is_quiescent():
            self._quiescent.notify_all()

    def _happened(self, lane: _Lane, operation: Operation, failed: tuple[int, ...]) -> None:
        """Record that the stream's oldest operation has run, and wake what waited for it."""
        worker = lane.worker
        lane.queue.popleft()
        if isinstance(operation, Compute):
            worker.computed += 1
        else:
            worker.outstanding.remove(operation.job)
            worker.copied.append(operation.job)
            if failed:
                worker.failed[operation.job] = failed
        for other in worker.lanes.values():
            if other.state is State.WAITING and other.may_go_on():
                other.wake.notify()

    def _perform(self, lane: _Lane, operation: Operation, pause: Callable[[], None]) -> tuple[int, ...]:
        """Run one operation: the only place where bytes are read and written, and no lock is held. Answers the
        positions of the pairs that could not be copied."""
        worker = lane.worker
        if self._on_run is not None:
            self._on_run(worker.number, operation)
        pause()
        if isinstance(operation, Compute):
            self._compute(worker, operation)
            return ()
        failing, lane.failing = lane.failing, ()
        if self._faults is not None:
            failing = self._faults(worker.number, operation)
        return self._copy(worker, operation, failing, pause)

    def _compute(self, worker: _Worker, operation: Compute) -> None:
        device = worker.tiers[Tier.DEVICE]
        for share in operation.shares:
            for block, expected in share.reads:
                found = device.decode(block)
                if found != expected:
                    with self._lock:
                        self.misreads.append(Misread(worker.number, operation.step, block, expected, found))
            for block, content in share.writes:
                device.fill(block, content)

    def _copy(
        self, worker: _Worker, operation: Copy, failing: Collection[int], pause: Callable[[], None]
    ) -> tuple[int, ...]:
        read_from, written_to = ENDS[operation.stream]
        source, destination = worker.tiers[read_from], worker.tiers[written_to]
        return copy_blocks(source, destination, operation.pairs, failing, pause if self._delays is not None else None)

    def _pauses(self, lane: _Lane) -> Callable[[], None]:
        """A function that at times waits a little: on the event that closing sets, so that closing is never late."""
        if self._delays is None:
            return lambda: None
        chance = random.Random(f"{self._delays} {lane.worker.number} {lane.stream}")

        def pause() -> None:
            if chance.random() < 0.5:
                self._closing.wait(chance.uniform(0.0, 0.002))

        return pause
