"""The device made of GPUs: a worker's blocks in GPU memory, its host tier pinned, three CUDA streams.

What an operation waits for is fixed when it is enqueued, and becomes waits of its stream for events: nothing of it is
left to the host, but that an operation is put into its stream only when what it waits for was put into its own. A copy
job is one call of the driver where the driver can do that (`description` says). Events are polled, never waited for.

A compute is made of copies too: what it reads is copied to pinned staging memory, in stream order, and compared when
the compute has run; what it writes comes from there. So no kernel runs, and none has to be loaded while a stream stands
still, which could wait for that very stream.

Gated, an operation waits for its events, records that it has arrived, and then waits until a word in pinned memory
counts it: the host writes that word to release it. Whether a wait is missing can only be probed: an operation that has
no business at its gate is seen there if it comes within `CudaDriver.settle`. So `runnable` may miss one, and never
invents one.

The second tier is a mapped file, and what goes between it and the host tier is copied by a thread for each stream.

A copy that the driver refuses is a failed one, all of it, and the stream goes on. What is made to fail, for a test, is
torn in stream order: each tier has a block of bytes that stand for nothing to copy from.

All memory that is needed is taken when the device is made: taking or giving back any could wait for every stream. So
make and close no other device while streams of a gated one stand at their gates.
"""

import random
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, pairwise
from types import TracebackType
from typing import Final, Self

from kvoffload.devices.cuda_driver import HIGH, LOW, CudaDriver, CudaStream, Event
from kvoffload.devices.cuda_lanes import BROKEN, LOOK, RESERVED, Entry, Lane, Shard, staging_needed
from kvoffload.devices.host_copies import CopyBegun, CopyThread
from kvoffload.devices.mapped_file import MappedFiles
from kvoffload.devices.wellformed import check, check_block
from kvoffload.errors import Hang, NotRunnable, UnknownBlock, UnknownJob
from kvoffload.kv_tensors import KVTensors, Pattern, Tensor
from kvoffload.operations import (
    ENDS,
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

LINE_WORDS: Final = 8
"""Each gate's word has a cache line of 64 bytes to itself."""

LONGEST_PAUSE_S: Final = 0.002


class Cuda:
    """A `Device` on one GPU or several: worker w is on GPU w modulo their number.

    One thread uses it. `description` says what it runs on, how it copies and how it is gated.
    """

    def __init__(
        self,
        driver: CudaDriver,
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
        staging_blocks: int | None = None,
        gpus: Sequence[int] | None = None,
        second_blocks: int = 0,
    ) -> None:
        """block_bytes  bytes of one block in one layer: a multiple of 8, at least 32

        delays    seed of random pauses of up to 2 ms before operations; None: none. They change when things happen
        watchdog  seconds after which something that must happen on a GPU is a `Hang`
        on_run    called with worker and operation when it was seen to have run, after what it waited for
        faults    asked with worker and copy, before it is put into its stream: the positions of its pairs that are to
                  fail. None: none are made to
        staging_blocks  per worker, for what computes read and write (count); None: enough for two computes that each
                  read every block, write every block and read them again
        gpus      GPUs to use, in order; None: all
        second_blocks  blocks of a second tier on each worker (count): files in a temporary folder, mapped into memory

        Raises ValueError for sizes that make no sense, and for a gated device where streams cannot be gated; OSError if
        the files cannot be made.
        """
        self.workers = workers
        self.second_blocks = second_blocks
        self.gated = gated
        self.misreads: list[Misread] = []
        self._driver = driver
        self._blocks = {Tier.DEVICE: device_blocks, Tier.HOST: host_blocks}
        if second_blocks:
            self._blocks[Tier.SECOND] = second_blocks
        self._watchdog = watchdog
        self._on_run = on_run
        self._faults = faults
        self._chance = None if delays is None else random.Random(delays)
        chosen = tuple(driver.gpus if gpus is None else gpus)
        if min(workers, device_blocks, host_blocks) < 1:
            raise ValueError("workers, device blocks and host blocks must be at least 1")
        if not chosen or not set(chosen) <= set(driver.gpus):
            raise ValueError(f"GPUs {list(chosen)} cannot be had; there are {list(driver.gpus)}")
        if gated:
            _require_gates(driver, -(-workers // len(chosen)))
        patterns = [Pattern(worker, layers, block_bytes) for worker in range(workers)]
        words = patterns[0].words
        self._staging_blocks = 6 * device_blocks if staging_blocks is None else staging_blocks
        staging = RESERVED + self._staging_blocks
        # One registration for all pinned memory: host tiers, staging, gates.
        shares = [layers * host_blocks * words, layers * staging * words, len(UPPER_STREAMS) * LINE_WORDS]
        self._pinned = driver.pinned(workers * sum(shares))
        self._files = MappedFiles() if second_blocks else None
        self._looks = {gpu: driver.stream(gpu, LOW) for gpu in chosen[:workers]}
        self._shards: list[Shard] = []
        gates: list[tuple[Tensor, Lane]] = []
        for worker in range(workers):
            host, staged, lines = _cut(self._pinned, worker * sum(shares), shares)
            gpu = chosen[worker % len(chosen)]
            shard = Shard(
                worker,
                gpu,
                driver.memory(gpu, layers, device_blocks + 1, words),
                self._below(patterns[worker], host.view(layers, host_blocks, words)),
                KVTensors(patterns[worker], staging, staged.view(layers, staging, words)),
            )
            for name, line in zip(UPPER_STREAMS, _cut(lines, 0, [LINE_WORDS] * len(UPPER_STREAMS)), strict=True):
                stream = driver.stream(gpu, HIGH if name is Stream.COMPUTE else LOW)
                lane = Lane(worker, name, stream, line if gated else None)
                shard.lanes[name] = lane
                gates += [(line, lane)] if gated else []
            for name in (Stream.CASCADE, Stream.PROMOTION) if second_blocks else ():
                shard.lanes[name] = Lane(worker, name, CopyThread(f"kvoffload-w{worker}-{name}"), None)
            shard.staging.data[:, BROKEN].fill_(-1)
            self._shards.append(shard)
        self._lanes = [lane for shard in self._shards for lane in shard.lanes.values()]
        self.description = _described(driver, workers, chosen[:workers], gated)
        # A process that ends with a stream at a gate would wait for it for ever: this runs then, too.
        self._open_gates = weakref.finalize(self, _open, gates)
        for shard in self._shards:
            self._look(shard, shard.staging.data, shard.device, (BROKEN, device_blocks))

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
        the compute stream, of a job that is outstanding already, or a compute larger than the staging memory,
        IndexError for an unknown worker.
        """
        shard = self._shard(worker)
        self._retire(shard)
        check(operation, self._blocks, shard.outstanding)
        if isinstance(operation, Compute):
            needed = staging_needed(operation)
            if needed > self._staging_blocks:
                raise ValueError(f"the compute needs {needed} staging blocks, and there are {self._staging_blocks}")
        else:
            shard.outstanding.add(operation.job)
        awaited = tuple([job for job in operation.jobs if job in shard.outstanding])
        shard.lanes[operation.stream].held.append(Entry(operation, awaited))
        self._submit(shard)

    def copied(self, worker: int) -> tuple[int, ...]:
        """Jobs whose copies have run on this worker and were not collected: those of one stream in order; how copies
        of two streams that run at the same time are listed depends on when it was looked."""
        shard = self._shard(worker)
        self._retire(shard)
        return () if shard.dead else tuple(shard.copied)

    def collect(self, worker: int, job: int) -> tuple[int, ...]:
        """Take one job out of `copied`; answers which of its pairs failed. UnknownJob if it is not there."""
        shard = self._shard(worker)
        self._retire(shard)
        if shard.dead or job not in shard.copied:
            raise UnknownJob(f"job {job} is not among those copied on worker {worker}")
        shard.copied.remove(job)
        return shard.failed.pop(job, ())

    def computed(self, worker: int) -> int:
        """How many computes have run on this worker, counted from the start."""
        shard = self._shard(worker)
        self._retire(shard)
        return shard.computed

    def runnable(self) -> tuple[tuple[int, Stream], ...]:
        """Gated only (else RuntimeError): the streams whose oldest operation is at its gate.

        Raises Hang if one that waits for nothing does not get there before the watchdog's deadline.
        """
        self._require(gated=True)
        self._await_gates()
        return tuple((lane.worker, lane.name) for lane in self._lanes if self._at_gate(lane))

    def run(self, worker: int, stream: Stream) -> None:
        """Gated only (else RuntimeError): let the operation at this stream's gate run; return when it has run.

        Raises NotRunnable if none is at the gate, Hang if it has not run before the watchdog's deadline.
        """
        self._release(worker, stream, ())

    def run_failing(self, worker: int, stream: Stream, pairs: Collection[int] | None = None) -> None:
        """As `run`, and the copies of the pairs at these positions (None: of all) are made to fail: what they wrote is
        torn before anything else can run.

        Raises NotRunnable also if the operation at the gate is no copy.
        """
        self._release(worker, stream, pairs)

    def _release(self, worker: int, stream: Stream, failing: Collection[int] | None) -> None:
        self._require(gated=True)
        shard = self._shard(worker)
        lane = shard.lanes.get(stream)
        if lane is None:
            raise NotRunnable(f"worker {worker} has no {stream} stream: there is no second tier")
        self._await_gates()
        if not self._at_gate(lane):
            raise NotRunnable(str(lane))
        entry = lane.submitted[0]
        if isinstance(entry.operation, Copy):
            broken = sorted(range(len(entry.operation.pairs)) if failing is None else failing)
        elif failing is None or failing:
            raise NotRunnable(f"no copy that could fail: {lane}")
        else:
            broken = []
        if lane.gate is None:
            assert isinstance(entry.operation, Copy)
            self._begin(shard, lane, entry, entry.operation, sorted({*self._failing(shard, entry.operation), *broken}))
        else:
            lane.gate.fill_(entry.ticket)
        self._until(lambda: _happened(entry.done), lambda: f"was released and did not run: {lane}")
        if lane.gate is not None and broken and isinstance(entry.operation, Copy):
            look = self._looks[shard.gpu]
            self._break(shard, look, entry.operation, broken)
            event = look.record()
            self._until(event.happened, lambda: f"could not be torn: {lane}")
            entry.failed = tuple(sorted({*entry.failed, *broken}))
        self._retire(shard)

    def die(self, worker: int) -> None:
        """Gated only (else RuntimeError): nothing of the worker is at its gate from now on, and what it has copied is
        told no more. What is enqueued there stays."""
        self._require(gated=True)
        self._shard(worker).dead = True

    def content(self, tier: Tier, worker: int, block: int) -> Content | Unreadable:
        """What this worker's copy of a block holds now. Raises UnknownBlock.

        Gated: always well defined, since nothing runs between two calls. Free: only for blocks that no running
        operation writes, or after `drain`.
        """
        shard = self._shard(worker)
        if tier in shard.below:
            return shard.below[tier].decode(block)
        if tier is not Tier.DEVICE:
            raise UnknownBlock(f"there is no {tier} tier, and so no block {block} of it")
        check_block(block, self._blocks[Tier.DEVICE])
        self._look(shard, shard.device, shard.staging.data, (block, LOOK))
        return shard.staging.decode(LOOK)

    def close(self) -> None:
        """Let everything that is in a stream run, gated or not, and give the memory back. What the host still holds is
        dropped. Idempotent. Raises Hang if the streams are not empty before the deadline: closing again tries again."""
        if not self._shards:
            return
        self._open_gates()
        left = [entry for lane in self._lanes for entry in lane.submitted if not _is_copy_thread_at_gate(lane, entry)]
        self._until(
            lambda: all(_happened(entry.done) for entry in left),
            lambda: "did not end: " + "; ".join(str(lane) for lane in self._lanes if lane.submitted),
        )
        for lane in self._lanes:
            if isinstance(lane.stream, CopyThread):
                lane.stream.close()
        if self._files is not None:
            self._files.close()
        self._lanes.clear()
        self._shards.clear()
        self._looks.clear()
        self._driver.release(self._pinned)
        del self._pinned

    # Beyond the seam: what tests and drivers of this device also need.

    def drain(self) -> None:
        """Free only (else RuntimeError): wait until all operations have run.

        Raises Hang if they have not before the watchdog's deadline, and at once if what is left waits for what can no
        longer happen.
        """
        self._require(gated=False)
        self._until(self._came_to_rest, lambda: "not drained: " + "; ".join(self._left()))
        if left := self._left():
            raise Hang("everything left waits for what is not coming: " + "; ".join(left))

    def wipe(self) -> None:
        """Gated only (else RuntimeError): run what is left, then be as new: every block UNWRITTEN, nothing collected.

        Workers that died live again, and run what they had left. Cheaper than another device. Raises Hang if what is
        left cannot run.
        """
        for shard in self._shards:
            shard.dead = False
        while gates := self.runnable():
            self.run(*gates[0])
        if left := self._left():
            raise Hang("everything left waits for what is not coming: " + "; ".join(left))
        for shard in self._shards:
            shard.computed = shard.submitted = 0
            shard.copied.clear()
            shard.failed.clear()
            for tensors in shard.below.values():
                tensors.blank()
            self._driver.blank(shard.device)
            self._look(shard, shard.staging.data, shard.device, (BROKEN, self._blocks[Tier.DEVICE]))
        self.misreads.clear()

    # Into the streams.

    def _submit(self, shard: Shard) -> None:
        """Put into the streams whatever may be: one operation may be what lets another one in."""
        moved = True
        while moved:
            moved = False
            for lane in shard.lanes.values():
                while lane.held and shard.may_submit(lane):
                    self._put(shard, lane, lane.held.popleft())
                    moved = True

    def _put(self, shard: Shard, lane: Lane, entry: Entry) -> None:
        """Waits, gate, the operation itself, and the event that says that it has run: all in stream order."""
        stream, operation = lane.stream, entry.operation
        if isinstance(stream, CopyThread):
            assert isinstance(operation, Copy)
            lane.submitted.append(entry)
            if not self.gated:
                self._begin(shard, lane, entry, operation, self._failing(shard, operation))
            return
        if entry.step >= shard.computed:
            stream.wait(shard.computes[entry.step])
        for job in entry.awaited:
            if job in shard.copies:
                stream.wait(shard.copies[job])
        if lane.gate is not None:
            lane.tickets += 1
            entry.ticket = lane.tickets
            entry.arrived = stream.record()
            stream.wait_for_value(lane.gate, entry.ticket)
        if pause_s := self._pause_s():
            stream.pause(pause_s)
        if isinstance(operation, Compute):
            self._compute(shard, stream, entry, operation)
        else:
            entry.failed = self._copy(shard, stream, operation)
        entry.done = stream.record()
        lane.submitted.append(entry)
        if isinstance(operation, Copy):
            shard.copies[operation.job] = entry.done
        else:
            shard.computes[shard.submitted] = entry.done
            shard.submitted += 1

    def _begin(self, shard: Shard, lane: Lane, entry: Entry, operation: Copy, failing: Sequence[int]) -> None:
        """Have the lane's thread copy between the host and the second tier. All that this waits for has happened."""
        assert isinstance(lane.stream, CopyThread)
        source, destination = [shard.below[tier] for tier in ENDS[operation.stream]]
        entry.done = lane.stream.begin(source, destination, operation.pairs, failing, self._pause_s())

    def _failing(self, shard: Shard, operation: Copy) -> list[int]:
        return sorted(self._faults(shard.number, operation)) if self._faults is not None else []

    def _pause_s(self) -> float:
        """How long to pause before the next operation."""
        if self._chance is None or self._chance.random() >= 0.5:
            return 0.0
        return self._chance.uniform(0.0, LONGEST_PAUSE_S)

    def _copy(self, shard: Shard, stream: CudaStream, operation: Copy) -> tuple[int, ...]:
        """All pairs in one call, but those that are to fail. Answers the positions of those that do."""
        failing = self._failing(shard, operation)
        if operation.stream is Stream.STORE:
            source, destination = shard.device, shard.host.data
        else:
            source, destination = shard.host.data, shard.device
        try:
            _copy(stream, source, destination, [p for at, p in enumerate(operation.pairs) if at not in failing])
        except RuntimeError:  # of torch or of the driver; if nothing works any more, the next call says so
            return tuple(range(len(operation.pairs)))
        self._break(shard, stream, operation, failing)
        return tuple(failing)

    def _break(self, shard: Shard, stream: CudaStream, operation: Copy, positions: Sequence[int]) -> None:
        """Put bytes that stand for nothing where these pairs were to be copied to."""
        blocks = [operation.pairs[position][1] for position in positions]
        if operation.stream is Stream.STORE:
            _copy(stream, shard.device, shard.host.data, [(self._blocks[Tier.DEVICE], block) for block in blocks])
        else:
            _copy(stream, shard.staging.data, shard.device, [(BROKEN, block) for block in blocks])

    def _look(self, shard: Shard, source: Tensor, destination: Tensor, pair: tuple[int, int]) -> None:
        """Copy one block beside all lanes, and wait for it."""
        look = self._looks[shard.gpu]
        look.copy(source, destination, (pair,))
        event = look.record()
        self._until(event.happened, lambda: f"one block of w{shard.number} was not copied")

    def _compute(self, shard: Shard, stream: CudaStream, entry: Entry, operation: Compute) -> None:
        """Share by share: what it reads to the staging memory, what it writes from there."""
        for share in operation.shares:
            found: list[tuple[int, int]] = []
            for block, expected in share.reads:
                slot = shard.free.pop()
                entry.staged.append(slot)
                entry.reads.append((block, expected, slot))
                found.append((block, slot))
            _copy(stream, shard.device, shard.staging.data, found)
            written: list[tuple[int, int]] = []
            for block, content in share.writes:
                slot = shard.free.pop()
                entry.staged.append(slot)
                shard.staging.fill(slot, content)
                written.append((slot, block))
            _copy(stream, shard.staging.data, shard.device, written)

    # Out of the streams.

    def _retire(self, shard: Shard) -> None:
        """Take in what has happened on this worker: each operation after all that it waited for."""
        moved = True
        while moved:
            moved = False
            for lane in shard.lanes.values():
                while lane.submitted and shard.awaits_nothing(lane.submitted[0]) and _happened(lane.submitted[0].done):
                    self._ran(shard, lane.submitted.popleft())
                    moved = True
        self._submit(shard)

    def _ran(self, shard: Shard, entry: Entry) -> None:
        operation = entry.operation
        if isinstance(operation, Compute):
            for block, expected, slot in entry.reads:
                found = shard.staging.decode(slot)
                if found != expected:
                    self.misreads.append(Misread(shard.number, operation.step, block, expected, found))
            shard.free += entry.staged
            del shard.computes[shard.computed]
            shard.computed += 1
        else:
            if isinstance(entry.done, CopyBegun):
                entry.failed = entry.done.failed()
            shard.outstanding.remove(operation.job)
            shard.copies.pop(operation.job, None)
            shard.copied.append(operation.job)
            if entry.failed:
                shard.failed[operation.job] = entry.failed
        if self._on_run is not None:
            self._on_run(shard.number, operation)

    def _await_gates(self) -> None:
        """Until every operation that waits for nothing is at its gate, and any other that can be there is."""
        for shard in self._shards:
            self._retire(shard)
        expected = [
            (lane, lane.submitted[0])
            for shard in self._shards
            for lane in shard.lanes.values()
            if lane.gate is not None and lane.submitted and shard.awaits_nothing(lane.submitted[0])
        ]
        self._until(
            lambda: all(_happened(entry.arrived) for _, entry in expected),
            lambda: "not at its gate: " + "; ".join(str(ln) for ln, entry in expected if not _happened(entry.arrived)),
        )
        self._driver.settle()

    def _came_to_rest(self) -> bool:
        for shard in self._shards:
            self._retire(shard)
        return not any(lane.submitted for lane in self._lanes)

    def _left(self) -> list[str]:
        return [str(lane) for lane in self._lanes if lane.submitted or lane.held]

    def _until(self, happened: Callable[[], bool], what: Callable[[], str]) -> None:
        deadline = time.monotonic() + self._watchdog
        while not happened():
            if time.monotonic() > deadline:
                raise Hang(f"within {self._watchdog} s {what()}")
            self._driver.idle()

    def _at_gate(self, lane: Lane) -> bool:
        """What a thread copies is given to it at its gate."""
        if not lane.submitted or self._shards[lane.worker].dead:
            return False
        return lane.gate is None or _happened(lane.submitted[0].arrived)

    def _below(self, pattern: Pattern, host: Tensor) -> dict[Tier, KVTensors]:
        """A worker's tiers in the host's memory: the pinned one, and a file if there is a second tier."""
        tiers = {Tier.HOST: KVTensors(pattern, host.shape[1], host)}
        if self._files is not None:
            shape = (pattern.layers, self.second_blocks, pattern.words)
            words = self._files.words(f"worker-{pattern.worker}", shape)
            tiers[Tier.SECOND] = KVTensors(pattern, self.second_blocks, words)
        return tiers

    def _shard(self, worker: int) -> Shard:
        if not self._shards:
            raise RuntimeError("the device is closed")
        if not 0 <= worker < self.workers:
            raise IndexError(f"worker {worker} of {self.workers}")
        return self._shards[worker]

    def _require(self, *, gated: bool) -> None:
        if self.gated is not gated:
            raise RuntimeError(f"only for a {'gated' if gated else 'free'} device")
        if not self._shards:
            raise RuntimeError("the device is closed")


def _cut(memory: Tensor, start: int, lengths: Sequence[int]) -> list[Tensor]:
    """Pieces of these lengths (words), one after another."""
    ends = list(accumulate(lengths, initial=start))
    return [memory[begin:end] for begin, end in pairwise(ends)]


def _copy(stream: CudaStream, source: Tensor, destination: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
    """One call for all pairs. Where a destination is there twice the last one counts: a call has no order."""
    last = {block: origin for origin, block in pairs}
    if last:
        stream.copy(source, destination, [(origin, block) for block, origin in last.items()])


def _happened(event: Event | None) -> bool:
    return event is not None and event.happened()


def _is_copy_thread_at_gate(lane: Lane, entry: Entry) -> bool:
    """A copy that no thread was given yet: it never will be."""
    return isinstance(lane.stream, CopyThread) and entry.done is None


def _open(gates: Sequence[tuple[Tensor, Lane]]) -> None:
    """Open them for everything that was ever put behind them."""
    for line, lane in gates:
        line.fill_(lane.tickets)


def _require_gates(driver: CudaDriver, workers: int) -> None:
    """Raises ValueError unless the streams of this many workers on one GPU can be gated."""
    if not driver.gating:
        raise ValueError(f"no gated device here: {driver.no_gating}")
    streams = workers * len(UPPER_STREAMS) + 1
    if streams > driver.connections:
        raise ValueError(
            f"no gated device with {workers} workers on one GPU: they need {streams} streams, and more than "
            f"{driver.connections} (CUDA_DEVICE_MAX_CONNECTIONS) may hold each other back"
        )


def _described(driver: CudaDriver, workers: int, gpus: Sequence[int], gated: bool) -> str:
    names = ", ".join(f"{driver.name(gpu)} (cuda:{gpu})" for gpu in gpus)
    count = f"{workers} worker{'s' if workers > 1 else ''}"
    return f"{count} on {names}; copies: {driver.copying}; " + (f"gates: {driver.gating}" if gated else "free-running")
