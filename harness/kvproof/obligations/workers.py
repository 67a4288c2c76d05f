"""Simulated workers: streams of a real worker, and symbolic contents of every block on each of them.

An adapter submits what the engine launches, in the order in which the engine's own worker would submit it. What runs
when is up to the commands; what an operation waits for is fixed when it is submitted. Contents are per token: a block
has `tokens_per_block` cells, and each holds the name of the whole prefix up to its token, and the age of the weights
by which it was computed. So a block that is half written, or holds somebody else's prefix, shows as that.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Direction = Literal["store", "load"]
COPY_STREAMS: tuple[Direction, ...] = ("store", "load")

UNWRITTEN = 0
"""Content of a cell that nobody has written. Every other content is a pair of a prefix's name and an age."""

AGES = 1 << 20
"""Contents of one prefix: its name times this, plus the age of the weights."""


class Share(NamedTuple):
    """One request's part of a compute.

    request  its number; table: its device blocks
    start, end  tokens computed: those before `start` are read
    prefixes    name of the prefix up to each token before `end`; positive
    """

    request: int
    table: tuple[int, ...]
    start: int
    end: int
    prefixes: Sequence[int]


@dataclass(slots=True)
class Copy:
    """One worker's part of a transfer job. after: computes that must have run before it (count from the start); ran:
    whether it has."""

    job: int
    direction: Direction
    pairs: tuple[tuple[int, int], ...]
    after: int
    ran: bool = False


class Misread(NamedTuple):
    """A compute read something else than what its request had written, or loaded, or hit.

    what  "unwritten", "other" (of another prefix: somebody else wrote there), "old" (of weights before a reset)
    age   of the weights by which it was computed, where it is old
    """

    worker: int
    request: int
    block: int
    token: int
    what: str
    age: int = 0


@dataclass(slots=True)
class Worker:
    """One rank. compute, store, load: its streams, oldest operation first, computes with the age of each share's
    weights when they were launched; submitted, ran: computes so far (count)."""

    device: list[list[int]]
    host: list[list[int]]
    compute: deque[tuple[tuple[int, ...], tuple[Share, ...]]] = field(default_factory=deque)
    store: deque[Copy] = field(default_factory=deque)
    load: deque[Copy] = field(default_factory=deque)
    submitted: int = 0
    ran: int = 0
    copied: list[Copy] = field(default_factory=list)

    def copies(self, direction: Direction) -> deque[Copy]:
        return self.store if direction == "store" else self.load


class Workers:
    """All ranks. `age` is that of the weights now; `misreads` are those seen so far.

    survivors  requests that ran through a change of the weights, with the age that theirs had: they go on reading and
               writing what is of that age
    """

    def __init__(self, workers: int, device_blocks: int, host_blocks: int, tokens_per_block: int) -> None:
        self.tokens_per_block = tokens_per_block
        self.age = 0
        self.survivors: dict[int, int] = {}
        self.misreads: list[Misread] = []
        self.ranks = [
            Worker(
                [[UNWRITTEN] * tokens_per_block for _ in range(device_blocks)],
                [[UNWRITTEN] * tokens_per_block for _ in range(host_blocks)],
            )
            for _ in range(workers)
        ]

    # Submitting, as the engine's worker does.

    def launch(self, worker: int, shares: tuple[Share, ...]) -> int:
        """Queue one step's compute. Returns how many there have been with it."""
        rank = self.ranks[worker]
        ages = tuple([self.survivors.get(share.request, self.age) for share in shares])
        rank.compute.append((ages, shares))
        rank.submitted += 1
        return rank.submitted

    def submit(
        self, worker: int, job: int, direction: Direction, pairs: Iterable[tuple[int, int]], waits_for_compute: bool
    ) -> Copy:
        """Queue a copy of (source, destination) blocks. It waits for the computes queued so far, or for none."""
        rank = self.ranks[worker]
        copy = Copy(job, direction, tuple(pairs), rank.submitted if waits_for_compute else 0)
        rank.copies(direction).append(copy)
        return copy

    def last_compute(self, worker: int, blocks: Collection[int], that_writes: bool) -> int:
        """How many computes have run once all of those have that are queued now and touch one of these device blocks
        (count from the start; 0: there is none).

        that_writes: only those that write one
        """
        rank, size = self.ranks[worker], self.tokens_per_block
        touching = [
            number
            for number, (_, shares) in enumerate(rank.compute, rank.ran + 1)
            for share in shares
            if not set(share.table[share.start // size if that_writes else 0 : -(-share.end // size)]).isdisjoint(
                blocks
            )
        ]
        return max(touching, default=0)

    def flush(self, worker: int, jobs: Collection[int]) -> None:
        """The host waits until these copies have run: so they do, with all that they wait for. Jobs that are not
        queued are none."""
        rank = self.ranks[worker]
        for direction in COPY_STREAMS:
            copies = rank.copies(direction)
            last = max((position for position, copy in enumerate(copies) if copy.job in jobs), default=-1)
            for _ in range(last + 1):
                while rank.ran < copies[0].after:
                    self.run(worker, "compute")
                self.run(worker, direction)

    # The weights.

    def weights_change(self, survivors: Iterable[int] = ()) -> None:
        """All that was computed is old from now on, but for these requests, which run on with the weights they had."""
        for request in survivors:
            self.survivors.setdefault(request, self.age)
        self.age += 1

    def forget_survivors(self, holders: Iterable[int]) -> None:
        """A request that holds nothing begins anew, with the weights of now. holders: those that hold blocks."""
        if self.survivors:
            for request in self.survivors.keys() - set(holders):
                del self.survivors[request]

    # Running.

    def runnable(self, worker: int, stream: str) -> bool:
        rank = self.ranks[worker]
        if stream == "compute":
            return bool(rank.compute)
        copies = rank.store if stream == "store" else rank.load
        return bool(copies) and copies[0].after <= rank.ran

    def run(self, worker: int, stream: str) -> None:
        """The oldest operation of a stream runs. It must be runnable."""
        rank = self.ranks[worker]
        if stream == "compute":
            ages, shares = rank.compute.popleft()
            for age, share in zip(ages, shares, strict=True):
                self._compute(worker, rank, share, age)
            rank.ran += 1
            return
        copy = (rank.store if stream == "store" else rank.load).popleft()
        source, destination = (rank.device, rank.host) if copy.direction == "store" else (rank.host, rank.device)
        for read, written in copy.pairs:
            destination[written] = list(source[read])
        copy.ran = True
        rank.copied.append(copy)

    def _compute(self, worker: int, rank: Worker, share: Share, age: int) -> None:
        size, prefixes, table = self.tokens_per_block, share.prefixes, share.table
        for token in range(share.start):
            block = table[token // size]
            content = rank.device[block][token % size]
            if content != prefixes[token] * AGES + age:
                what = "unwritten" if not content else "old" if content // AGES == prefixes[token] else "other"
                self.misreads.append(Misread(worker, share.request, block, token, what, content % AGES))
                break
        for token in range(share.start, share.end):
            rank.device[table[token // size]][token % size] = prefixes[token] * AGES + age

    def collect(self, worker: int) -> list[Copy]:
        """What was copied since the last call, in the order in which it ran: what a poll sees."""
        copied, self.ranks[worker].copied = self.ranks[worker].copied, []
        return copied

    def collected(self, worker: int, copy: Copy) -> bool:
        """Whether this copy has run, for a poll that asks for it alone; then it counts as reported."""
        self.ranks[worker].copied = [other for other in self.ranks[worker].copied if other is not copy]
        return copy.ran

    def unfinished(self) -> bool:
        """Whether any operation has not run, or any copy has not been collected."""
        return any(rank.compute or rank.store or rank.load or rank.copied for rank in self.ranks)

    def jobs(self) -> set[int]:
        """Jobs that some worker has not copied yet, or whose copy has not been collected."""
        return {copy.job for rank in self.ranks for copies in (rank.store, rank.load, rank.copied) for copy in copies}
