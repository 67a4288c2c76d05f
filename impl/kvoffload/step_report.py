"""What one scheduling call did, in order. Plain data."""

from typing import NamedTuple

from kvoffload.ids import Block, JobId, Pair, RequestId, WorkerRank
from kvoffload.plan import LaunchPlan
from kvoffload.scheduler import Admission


class Reported(NamedTuple):
    """A worker's completions were taken in. failed: those of the jobs of which it could not copy every block."""

    worker: WorkerRank
    jobs: tuple[JobId, ...]
    failed: tuple[JobId, ...] = ()


class Expired(NamedTuple):
    """A transfer was given up at its deadline."""

    job: JobId


class OutputHandled(NamedTuple):
    step: int


class Finished(NamedTuple):
    request: RequestId


class Woken(NamedTuple):
    request: RequestId


class Preempted(NamedTuple):
    """Preempted under pressure, so that another request can grow."""

    request: RequestId


class Grown(NamedTuple):
    request: RequestId
    block: Block


class LookupReleased(NamedTuple):
    """What a lookup had pinned was given up, since nothing else could free blocks for an admission."""

    request: RequestId


class Promoted(NamedTuple):
    """Blocks of the second tier are brought back to the host for a request that waits. pairs: what that job copies."""

    request: RequestId
    job: JobId
    pairs: tuple[Pair, ...]


class Admitted(NamedTuple):
    request: RequestId
    admission: Admission


class Launched(NamedTuple):
    plan: LaunchPlan


Event = (
    Reported
    | Expired
    | OutputHandled
    | Finished
    | Woken
    | Preempted
    | Grown
    | LookupReleased
    | Promoted
    | Admitted
    | Launched
)


class StepReport(NamedTuple):
    """events: everything that was done, in order. plan: the launch among them, which the workers must be told."""

    events: tuple[Event, ...]
    plan: LaunchPlan | None
