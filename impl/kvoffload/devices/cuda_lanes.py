"""What the device on CUDA keeps of each worker: its memory, its streams, and what was put into them."""

from collections import deque
from collections.abc import Mapping
from typing import Final

from kvoffload.devices.cuda_driver import CudaStream, Event
from kvoffload.devices.host_copies import CopyThread
from kvoffload.kv_tensors import KVTensors, Tensor
from kvoffload.operations import Compute, Content, Copy, Operation, Stream, Tier

LOOK: Final = 0
"""The staging block that `Cuda.content` copies into; no compute is given it."""

BROKEN: Final = 1
"""The staging block whose bytes stand for nothing. The GPU has such a block too, after all others."""

RESERVED: Final = 2
"""Staging blocks that no compute is given (count)."""


class Entry:
    """An operation that was enqueued.

    awaited  jobs that were outstanding then, of those that it names
    reads    of a compute: (block, content that was promised, staging block with what was found)
    staged   staging blocks that it uses until it has run
    failed   of a copy: the positions of its pairs that failed
    arrived  gated: the event before its gate
    ticket   gated: the value of the lane's word that releases it
    """

    __slots__ = ("arrived", "awaited", "done", "failed", "operation", "reads", "staged", "ticket")

    def __init__(self, operation: Operation, awaited: tuple[int, ...]) -> None:
        self.operation = operation
        self.awaited = awaited
        self.reads: list[tuple[int, Content, int]] = []
        self.staged: list[int] = []
        self.failed: tuple[int, ...] = ()
        self.arrived: Event | None = None
        self.done: Event | None = None
        self.ticket = 0

    @property
    def step(self) -> int:
        """The last compute that it waits for; -1: none."""
        return self.operation.step if isinstance(self.operation, Copy) else -1


class Lane:
    """One stream of one worker: what the host still holds, and what was put into the CUDA stream and has not run.

    What goes between the host and the second tier is no business of a GPU: a thread makes those copies. They are given
    to it when all that they wait for has happened, and what waits for them is held until they are over.
    """

    def __init__(self, worker: int, name: Stream, stream: CudaStream | CopyThread, gate: Tensor | None) -> None:
        """gate  gated CUDA streams only: the pinned word that opens it"""
        self.worker = worker
        self.name = name
        self.stream = stream
        self.gate = gate
        self.held: deque[Entry] = deque()
        self.submitted: deque[Entry] = deque()
        self.tickets = 0

    def __str__(self) -> str:
        oldest = (*self.submitted, *self.held)[:1]
        counts = f"{len(self.submitted)} in the stream, {len(self.held)} not yet"
        return f"w{self.worker} {self.name}: {counts}" + (f", oldest {oldest[0].operation}" if oldest else "")


class Shard:
    """One worker: its memory, its streams, and what is known to have happened on it.

    below  its tiers in the host's memory
    """

    def __init__(
        self, number: int, gpu: int, device: Tensor, below: Mapping[Tier, KVTensors], staging: KVTensors
    ) -> None:
        self.number = number
        self.gpu = gpu
        self.device = device
        self.below = below
        self.host = below[Tier.HOST]
        self.staging = staging
        self.dead = False
        self.free = list(range(RESERVED, staging.blocks))
        self.lanes: dict[Stream, Lane] = {}
        self.computes: dict[int, Event] = {}
        """Of every compute in the stream, by how many there were before it."""
        self.submitted = 0
        """How many computes were ever put into the stream; `computed`: how many of them have run."""
        self.computed = 0
        self.copies: dict[int, Event] = {}
        """Of every outstanding job that was put into its CUDA stream."""
        self.outstanding: set[int] = set()
        self.copied: list[int] = []
        self.failed: dict[int, tuple[int, ...]] = {}
        """Of each job among these that failed in part or wholly."""

    def may_submit(self, lane: Lane) -> bool:
        """Is everything that the oldest operation held waits for in a stream? CUDA takes an event that was not recorded
        for one that happened. A thread knows no events: for one of its copies all must have happened."""
        entry = lane.held[0]
        if isinstance(lane.stream, CopyThread):
            return self.awaits_nothing(entry)
        if entry.step >= self.submitted:
            return False
        if any(job in self.outstanding and job not in self.copies for job in entry.awaited):
            return False
        return not isinstance(entry.operation, Compute) or staging_needed(entry.operation) <= len(self.free)

    def awaits_nothing(self, entry: Entry) -> bool:
        """Is everything that it waits for known to have happened?"""
        return entry.step < self.computed and self.outstanding.isdisjoint(entry.awaited)


def staging_needed(compute: Compute) -> int:
    """How many staging blocks it needs until it has run (count)."""
    return sum(len(share.reads) + len(share.writes) for share in compute.shares)
