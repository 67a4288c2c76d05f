"""One transfer: the copies that are launched together and completed together."""

from dataclasses import dataclass, field
from enum import StrEnum

from kvoffload.ids import Block, JobId, Pair, RequestId, Tiers, WorkerRank
from kvoffload.plain import Plain


class Direction(StrEnum):
    """CASCADE: on from the host to the second tier. PROMOTION: back from there."""

    STORE = "STORE"
    LOAD = "LOAD"
    CASCADE = "CASCADE"
    PROMOTION = "PROMOTION"


class JobState(StrEnum):
    """LIVE: will publish what it copied. ABANDONED: publishes nothing, but holds its references until it is complete.
    FORGOTTEN: holds nothing; remembered only because its copies may still run, so that reuse can wait for them."""

    LIVE = "LIVE"
    ABANDONED = "ABANDONED"
    FORGOTTEN = "FORGOTTEN"


@dataclass(slots=True)
class TransferJob(Plain):
    """A transfer that some worker has not reported.

    request        whose blocks wait for it; None: nobody's
    pairs          what is copied where; a STORE goes from device to host, a LOAD from host to device, a CASCADE from
                   host to second tier, a PROMOTION from second tier to host
    awaiting       workers that have not reported it. Whether they have copied it is not known here.
    launched       False: queued for the next launch; no worker knows of it
    flush_ordered  launches must wait for its copies on every worker (fencing only)
    failed         positions of pairs that some worker has reported as not copied: no worker makes up for another
    """

    id: JobId
    direction: Direction
    request: RequestId | None
    pairs: tuple[Pair, ...]
    awaiting: set[WorkerRank]
    launched: bool = False
    flush_ordered: bool = False
    state: JobState = JobState.LIVE
    failed: set[int] = field(default_factory=set)

    @property
    def intact(self) -> tuple[Pair, ...]:
        """What a complete job has brought over, and may be found. Of a load that failed in part, what precedes the
        first failure: a request computes in order, and so computes over whatever follows (vLLM PR 50321)."""
        if not self.failed:
            return self.pairs
        if self.direction is Direction.LOAD:
            return self.pairs[: min(self.failed)]
        return tuple([pair for position, pair in enumerate(self.pairs) if position not in self.failed])

    @property
    def missing(self) -> tuple[Pair, ...]:
        """The pairs that failed."""
        return tuple([self.pairs[position] for position in sorted(self.failed)])

    def publishes_in(self, tiers: Tiers) -> bool:
        """Is what it copies to be found in one of these tiers? The second tier goes with the host."""
        return tiers == "all" or (tiers == "device") == (self.direction is Direction.LOAD)

    @property
    def device_blocks(self) -> list[Block]:
        return self._blocks(Direction.STORE, Direction.LOAD)

    @property
    def host_blocks(self) -> list[Block]:
        if self.direction is Direction.STORE or self.direction is Direction.PROMOTION:
            return [pair.destination for pair in self.pairs]
        return [pair.source for pair in self.pairs]

    @property
    def second_blocks(self) -> list[Block]:
        return self._blocks(Direction.PROMOTION, Direction.CASCADE)

    def _blocks(self, reading: Direction, writing: Direction) -> list[Block]:
        """Its blocks of a tier that one direction reads and the other writes."""
        if self.direction is reading:
            return [pair.source for pair in self.pairs]
        return [pair.destination for pair in self.pairs] if self.direction is writing else []
