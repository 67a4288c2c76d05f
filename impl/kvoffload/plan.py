"""What one launch tells every worker. Plain data."""

from typing import NamedTuple

from kvoffload.ids import Block, JobId, Pair, RequestId
from kvoffload.operations import Content


class PlannedShare(NamedTuple):
    """One request's part of a step: blocks that it reads, and blocks that it fills, with the content of each.

    first  the position of the first block that it fills; those that it reads are the ones just before
    """

    request: RequestId
    reads: tuple[tuple[Block, Content], ...]
    writes: tuple[tuple[Block, Content], ...]
    first: int


class PlannedCopy(NamedTuple):
    job: JobId
    pairs: tuple[Pair, ...]


class LaunchPlan(NamedTuple):
    """One launch: at most one compute, and copies. It is the same for every worker.

    step          number of its compute; None: it computes nothing
    shares        what the compute does, in order of request
    stores        copies from device to host that are made now, in order of job
    loads         jobs that copy from host to device, in order; `load_copies` says what
    flush         jobs of earlier launches whose copies must have run on a worker before anything of this launch does
    steps_before  computes that were launched earlier (count): `step`, if there is one, equals it
    load_copies   the same jobs as `loads`, with their pairs
    cascades      copies from host to second tier that are made now: one job at most
    promotions    jobs that copy from second tier to host, in order
    """

    step: int | None
    shares: tuple[PlannedShare, ...]
    stores: tuple[PlannedCopy, ...]
    loads: tuple[JobId, ...]
    flush: tuple[JobId, ...]
    steps_before: int
    load_copies: tuple[PlannedCopy, ...]
    cascades: tuple[PlannedCopy, ...] = ()
    promotions: tuple[PlannedCopy, ...] = ()
