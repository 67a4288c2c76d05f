"""What a worker's streams carry: compute and copies, each with the events it waits for. Plain data."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Stream(StrEnum):
    """A worker's FIFO queues. Operations of one stream run in order; those of different streams do not."""

    COMPUTE = "compute"
    STORE = "store"
    LOAD = "load"
    CASCADE = "cascade"
    PROMOTION = "promotion"


STREAMS = tuple(Stream)
"""Each once, in the order of the class; going through the class itself is several times slower."""

UPPER_STREAMS = (Stream.COMPUTE, Stream.STORE, Stream.LOAD)
"""Those of a worker without a second host tier."""


class Tier(StrEnum):
    """SECOND: below the host, such as a file; larger, and slower."""

    DEVICE = "device"
    HOST = "host"
    SECOND = "second"


ENDS: Mapping[Stream, tuple[Tier, Tier]] = {
    Stream.STORE: (Tier.DEVICE, Tier.HOST),
    Stream.LOAD: (Tier.HOST, Tier.DEVICE),
    Stream.CASCADE: (Tier.HOST, Tier.SECOND),
    Stream.PROMOTION: (Tier.SECOND, Tier.HOST),
}
"""Of each stream of copies, the tier that is read and the tier that is written."""


class Content(NamedTuple):
    """What a block's bytes stand for: the KV of `key`, computed with the weights of `generation`."""

    key: int
    generation: int


class Unreadable(StrEnum):
    """Bytes that decode to no content: never written, or written in part (layers disagree)."""

    UNWRITTEN = "UNWRITTEN"
    TORN = "TORN"


class Share(NamedTuple):
    """One request's part of a compute: blocks whose content it reads, and blocks it fills, as (block, content)."""

    reads: tuple[tuple[int, Content], ...]
    writes: tuple[tuple[int, Content], ...]


class Compute(NamedTuple):
    """The forward pass of one step. `step` numbers launched computes 0, 1, 2, ... on every worker alike.

    jobs  copies that must have run on this worker before (the fence)
    """

    step: int
    shares: tuple[Share, ...]
    jobs: tuple[int, ...]

    @property
    def stream(self) -> Stream:
        return Stream.COMPUTE


class Copy(NamedTuple):
    """All copies of one transfer job on one worker.

    pairs  (source block, destination block), of the tiers that `ENDS` says of the stream
    step   the last compute that must have run on this worker before; -1: none
    jobs   other copies that must have run on this worker before (the fence)
    """

    job: int
    stream: Stream
    pairs: tuple[tuple[int, int], ...]
    step: int
    jobs: tuple[int, ...]


Operation = Compute | Copy


class Misread(NamedTuple):
    """A compute that found other content than the engine promised: always a bug of whoever ordered the copies."""

    worker: int
    step: int
    block: int
    expected: Content
    found: Content | Unreadable
