"""A device without bytes: it keeps the content of every block as a symbol. Plain data, no threads, exact."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from kvoffload.errors import NotRunnable, UnknownJob
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
from kvoffload.plain import Plain


@dataclass(slots=True)
class LedgerWorker(Plain):
    """One worker's streams and memory.

    device, host, second   what each block holds
    computes, stores, loads, cascades, promotions   operations that have not run, oldest first
    unrun      jobs among them: a wait for any other job is satisfied
    computed   computes that have run (count)
    finished   jobs that were copied and not collected, in the order in which they ran
    failed     positions of the pairs that failed, of each job among these that has any
    dead       it has died: nothing runs, and what it has copied nobody will hear of
    """

    device: list[Content | Unreadable]
    host: list[Content | Unreadable]
    computes: list[Compute]
    stores: list[Copy]
    loads: list[Copy]
    unrun: set[int]
    computed: int
    finished: list[int]
    failed: dict[int, tuple[int, ...]]
    second: list[Content | Unreadable]
    cascades: list[Copy]
    promotions: list[Copy]
    dead: bool = False

    @classmethod
    def blank(cls, device_blocks: int, host_blocks: int, second_blocks: int) -> Self:
        unwritten: list[Content | Unreadable] = [Unreadable.UNWRITTEN]
        device, host, second = unwritten * device_blocks, unwritten * host_blocks, unwritten * second_blocks
        return cls(device, host, [], [], [], set(), 0, [], {}, second, [], [])

    def memory(self, tier: Tier) -> list[Content | Unreadable]:
        """What each block of a tier holds."""
        if tier is Tier.DEVICE:
            return self.device
        return self.host if tier is Tier.HOST else self.second

    def queue(self, stream: Stream) -> list[Copy]:
        """The copies of a stream that have not run, oldest first."""
        if stream is Stream.STORE:
            return self.stores
        if stream is Stream.LOAD:
            return self.loads
        return self.cascades if stream is Stream.CASCADE else self.promotions

    def enqueue(self, operation: Operation) -> None:
        if isinstance(operation, Compute):
            self.computes.append(operation)
        else:
            self.queue(operation.stream).append(operation)
            self.unrun.add(operation.job)

    def ready(self, stream: Stream) -> bool:
        """Could the oldest operation of this stream run now?"""
        if self.dead:
            return False
        if stream is Stream.COMPUTE:
            return bool(self.computes) and self.unrun.isdisjoint(self.computes[0].jobs)
        queue = self.queue(stream)
        return bool(queue) and queue[0].step < self.computed and self.unrun.isdisjoint(queue[0].jobs)

    def copy(self, stream: Stream, failing: Collection[int] | None = ()) -> None:
        """Run the oldest copy of this stream; the pairs at the positions `failing` (None: all) fail and are torn."""
        read_from, written_to = ENDS[stream]
        source, destination = self.memory(read_from), self.memory(written_to)
        operation = self.queue(stream).pop(0)
        for read, written in operation.pairs:
            destination[written] = source[read]
        if failing is None or failing:
            torn = range(len(operation.pairs)) if failing is None else sorted(failing)
            for position in torn:
                destination[operation.pairs[position][1]] = Unreadable.TORN
            self.failed[operation.job] = tuple(torn)
        self.unrun.discard(operation.job)
        self.finished.append(operation.job)

    def compute(self, worker: int) -> list[Misread]:
        """Run the oldest compute; answers the reads that found something else than was promised."""
        operation = self.computes.pop(0)
        misreads: list[Misread] = []
        for share in operation.shares:
            for block, expected in share.reads:
                if self.device[block] != expected:
                    misreads.append(Misread(worker, operation.step, block, expected, self.device[block]))
            for block, content in share.writes:
                self.device[block] = content
        self.computed += 1
        return misreads


@dataclass(slots=True)
class Ledger(Plain):
    """The streams and memory of all workers, as symbols. `Ledger.create` makes one; it is a `Device`.

    A wait for a step is for the number of computes that have run. A wait for a job is satisfied unless the job is
    enqueued on that worker and has not run: what is waited for was enqueued before (`kvoffload.ordering`).
    """

    workers: int
    second_blocks: int
    gated: bool
    misreads: list[Misread]
    shards: list[LedgerWorker]

    @classmethod
    def create(
        cls, workers: int, device_blocks: int, host_blocks: int, gated: bool = True, second_blocks: int = 0
    ) -> Self:
        """Nothing enqueued, nothing written. Free (not gated): whatever can run has run when `enqueue` returns."""
        shards = [LedgerWorker.blank(device_blocks, host_blocks, second_blocks) for _ in range(workers)]
        return cls(workers, second_blocks, gated, [], shards)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Those of each worker."""
        return STREAMS if self.second_blocks else UPPER_STREAMS

    def enqueue(self, worker: int, operation: Operation) -> None:
        shard = self.shards[worker]
        shard.enqueue(operation)
        if not self.gated:
            while ready := [stream for stream in self.streams if shard.ready(stream)]:
                self._run(worker, ready[0])

    def copied(self, worker: int) -> tuple[int, ...]:
        shard = self.shards[worker]
        return () if shard.dead else tuple(shard.finished)

    def collect(self, worker: int, job: int) -> tuple[int, ...]:
        if job not in self.copied(worker):
            raise UnknownJob(f"job {job} is not among those that worker {worker} has copied: {self.copied(worker)}")
        finished = self.shards[worker].finished
        finished.remove(job)
        return self.shards[worker].failed.pop(job, ())

    def computed(self, worker: int) -> int:
        return self.shards[worker].computed

    def runnable(self) -> tuple[tuple[int, Stream], ...]:
        streams = self.streams
        return tuple(
            [(worker, stream) for worker, shard in enumerate(self.shards) for stream in streams if shard.ready(stream)]
        )

    def run(self, worker: int, stream: Stream) -> None:
        if not self.shards[worker].ready(stream):
            raise NotRunnable(f"the {stream} stream of worker {worker} is empty, or its oldest operation must wait")
        self._run(worker, stream)

    def run_failing(self, worker: int, stream: Stream, pairs: Collection[int] | None = None) -> None:
        """Run the oldest copy of this stream, and let the pairs at these positions (None: all) fail."""
        if stream is Stream.COMPUTE or not self.shards[worker].ready(stream):
            raise NotRunnable(f"the {stream} stream of worker {worker} has no copy that could run and fail")
        self.shards[worker].copy(stream, pairs)

    def die(self, worker: int) -> None:
        """The worker runs and tells nothing from now on. Its memory stays as it is."""
        self.shards[worker].dead = True

    def content(self, tier: Tier, worker: int, block: int) -> Content | Unreadable:
        return self.shards[worker].memory(tier)[block]

    def close(self) -> None:
        """Nothing to stop, nothing to give back."""

    def _run(self, worker: int, stream: Stream) -> None:
        if stream is Stream.COMPUTE:
            self.misreads += self.shards[worker].compute(worker)
        else:
            self.shards[worker].copy(stream)
