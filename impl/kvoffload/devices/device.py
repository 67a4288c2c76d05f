"""The only seam between the engine's workers and what executes their streams."""

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from kvoffload.operations import Content, Misread, Operation, Stream, Tier, Unreadable


class Device(Protocol):
    """Streams and memory of every worker.

    A device runs *free* (operations run as soon as what they wait for has happened) or *gated* (an operation runs
    only when `run` releases it). The engine cannot tell the difference.

    second_blocks  blocks of its second host tier on each worker (count; 0: it has none)
    """

    workers: int
    second_blocks: int
    gated: bool
    misreads: list[Misread]

    def enqueue(self, worker: int, operation: Operation) -> None:
        """Put one operation at the end of its stream on one worker. Returns at once."""
        ...

    def copied(self, worker: int) -> tuple[int, ...]:
        """Jobs whose copies have run on this worker and were not yet `collect`ed, in the order in which they ran."""
        ...

    def collect(self, worker: int, job: int) -> tuple[int, ...]:
        """Take one job out of `copied`; answers the positions of those of its pairs whose copy failed, in order.
        UnknownJob if it is not there."""
        ...

    def computed(self, worker: int) -> int:
        """How many computes have run on this worker, counted from the start."""
        ...

    def runnable(self) -> tuple[tuple[int, Stream], ...]:
        """Gated only: every (worker, stream) whose oldest operation could run now, in order of worker and stream."""
        ...

    def run(self, worker: int, stream: Stream) -> None:
        """Gated only: run the oldest operation of this stream, and return when it has run. NotRunnable otherwise."""
        ...

    def content(self, tier: Tier, worker: int, block: int) -> Content | Unreadable:
        """What this worker's copy of a block holds now. Only meaningful while no running operation writes it."""
        ...

    def close(self) -> None:
        """Stop all threads and give the memory back. Idempotent."""
        ...


@runtime_checkable
class DiesOnDemand(Protocol):
    """A device whose workers can be made to die, so that what the engine makes of that can be seen."""

    def die(self, worker: int) -> None:
        """Gated only: from now on none of the worker's operations runs, and none of its copies is told of. What is
        enqueued there is taken, as the engine does not know, and stays."""
        ...


@runtime_checkable
class FailsOnDemand(Protocol):
    """A device whose copies can be made to fail, so that what the engine makes of that can be seen."""

    def run_failing(self, worker: int, stream: Stream, pairs: Collection[int] | None = None) -> None:
        """Gated only: `run`, but the copies of the pairs at these positions (None: of all) fail. NotRunnable as `run`,
        and for a stream whose oldest operation is no copy."""
        ...
