"""One request, as the scheduler sees it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kvoffload.ids import NO_BLOCK, Block, JobId, Key, RequestId
from kvoffload.plain import Plain

NO_GENERATION = -1


class Phase(StrEnum):
    """WAITING for blocks; LOADING its prefix from the host; RUNNING; DRAINING: aborted or preempted, but a load still
    writes into its blocks (fencing only); DONE."""

    WAITING = "WAITING"
    LOADING = "LOADING"
    RUNNING = "RUNNING"
    DRAINING = "DRAINING"
    DONE = "DONE"


class Pins(NamedTuple):
    """What the last lookup found and keeps referenced until the request is admitted, ends or looks again.

    Without that an allocation in between would evict what was found (vLLM PR 42289).
    """

    device: tuple[Block, ...]
    host: tuple[Block, ...]


@dataclass(slots=True)
class Request(Plain):
    """A sequence of blocks to be computed.

    prompt      keys of the prompt's blocks; total: the same followed by the keys of the blocks to be decoded
    table       device blocks that it holds, in the order of `total`; NO_BLOCK for those that its window has left
    computed    leading blocks of the table whose KV exists (count)
    ahead       leading blocks of the table whose KV exists or is being computed by launched steps (count): where the
                next step begins. vLLM advances its num_computed_tokens at the launch for the same end.
    stored      leading blocks of the table that were already offered to the host (count; eager stores only)
    generation  of the weights that its table is computed with; NO_GENERATION while it has no table
    pins        None: not looked up
    jobs        transfers that must be complete before it is admitted again: its load, a promotion for it; under fencing
                its stores too
    promoted    blocks were promoted for it since it began to wait, which is done once: two whose blocks do not fit on
                the host together would take turns for ever
    returns     DRAINING only: it was preempted and will wait again; otherwise it was aborted and will be DONE
    """

    id: RequestId
    prompt: tuple[Key, ...]
    total: tuple[Key, ...]
    phase: Phase = Phase.WAITING
    table: list[Block] = field(default_factory=list)
    computed: int = 0
    ahead: int = 0
    stored: int = 0
    generation: int = NO_GENERATION
    pins: Pins | None = None
    jobs: set[JobId] = field(default_factory=set)
    returns: bool = False
    promoted: bool = False

    @property
    def held(self) -> list[Block]:
        """The blocks of its table, one entry for each reference that it has."""
        return [block for block in self.table if block != NO_BLOCK]

    @property
    def deferred(self) -> bool:
        """It waits, and transfers from its last life are outstanding: ask again later (vLLM PR 46231)."""
        return self.phase is Phase.WAITING and bool(self.jobs)

    def vacate(self, phase: Phase) -> None:
        """It holds no blocks any more (the caller has released or handed on the table) and goes to `phase`."""
        self.phase = phase
        self.table = []
        self.computed = 0
        self.ahead = 0
        self.stored = 0
        self.generation = NO_GENERATION
        self.returns = False
        self.promoted = False
