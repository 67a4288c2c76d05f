"""Actions: what can happen, as data. Without a choice an action means what the policy chooses; with one, exactly that.

Actions of different classes may compare equal as tuples; use `key(action)` where they meet in one set.
"""

from typing import Literal, NamedTuple

from kvmodel.scope import Meaning
from kvmodel.tiers import Tiers
from kvmodel.transfer_job import Pair

Survivors = Literal["preempt", "keep"]
Freed = Literal["device", "host", "second", "request"]
Repeated = Literal["last", "first"]


class Submit(NamedTuple):
    """The client submits a request."""

    request: int


class Lookup(NamedTuple):
    """The scheduler looks a request's prompt up and pins what it finds. hits: (device blocks, host blocks)."""

    request: int
    hits: tuple[tuple[int, ...], tuple[int, ...]] | None = None


class ReleaseLookup(NamedTuple):
    """The scheduler gives up what a lookup pinned."""

    request: int


class Promote(NamedTuple):
    """The scheduler has blocks promoted from the second tier that a request would hit on the host. pairs: which, and
    where to. The request waits for them."""

    request: int
    pairs: tuple[Pair, ...] | None = None


class Admission(NamedTuple):
    """Choices of Admit.

    device  the device hits that are used
    host    the host hits that are loaded
    fresh   free device blocks that are taken: the destinations of the load, then those to be computed
    """

    device: tuple[int, ...]
    host: tuple[int, ...]
    fresh: tuple[int, ...]


class Admit(NamedTuple):
    """The scheduler gives a request its blocks, and makes a load job from host hits."""

    request: int
    choice: Admission | None = None


class Grow(NamedTuple):
    """The scheduler gives a running request more blocks. blocks: those taken."""

    request: int
    blocks: tuple[int, ...] | None = None


class Launching(NamedTuple):
    """Choices of Launch.

    computes  (request, start, end): its blocks table[start:end] are computed
    stores    (request or NONE, pairs): the store jobs made now, in the order of their ids
    cursors   (request, stored): how far each request's blocks have been offered to the host
    flush     jobs whose copies must run before anything of this launch
    cascade   pairs of the one job, made before the stores, that goes on to the second tier; empty: there is none
    """

    computes: tuple[tuple[int, int, int], ...]
    stores: tuple[tuple[int, tuple[Pair, ...]], ...]
    cursors: tuple[tuple[int, int], ...]
    flush: tuple[int, ...]
    cascade: tuple[Pair, ...] = ()


class Launch(NamedTuple):
    """The scheduler launches one step: compute, the stores and the cascade made now, all queued loads and promotions,
    and what to flush first."""

    choice: Launching | None = None


class Run(NamedTuple):
    """The oldest operation of a worker's stream runs."""

    worker: int
    stream: int


class Report(NamedTuple):
    """A worker reports a copied job to the scheduler."""

    worker: int
    job: int


class ReportMark(NamedTuple):
    """A worker reports a high-water mark: its copies of this stream (STORE or LOAD) have run up to that job."""

    worker: int
    stream: int
    mark: int


class Wake(NamedTuple):
    """A request whose load is complete becomes runnable."""

    request: int


class HandleOutput(NamedTuple):
    """The scheduler handles the output of the oldest launched step."""


class PreemptUnderPressure(NamedTuple):
    """The scheduler preempts a running request, since another one cannot grow."""

    request: int


class Preempt(NamedTuple):
    """The client preempts a request."""

    request: int


class Finish(NamedTuple):
    """A request that is wholly computed ends."""

    request: int


class Stop(NamedTuple):
    """An output ends a request before all that it might decode: the model sampled a stop token. With asynchronous
    scheduling the request may be in the next launched step already."""

    request: int


class Abort(NamedTuple):
    """The client aborts a request."""

    request: int


class Reset(NamedTuple):
    """The client resets the caches of `tiers`. `preempt` returns running requests to waiting, `keep` lets them
    survive."""

    meaning: Meaning
    requests: Survivors
    tiers: Tiers = "all"
    answer: bool | None = None


class FailCopy(NamedTuple):
    """Fault: the oldest copy of a worker's stream runs and fails. position: the pair that fails, the others are
    copied; None: all of them fail."""

    worker: int
    stream: int
    position: int | None = None


class Die(NamedTuple):
    """Fault: a worker dies. It runs and reports nothing any more."""

    worker: int


class DeclareDead(NamedTuple):
    """The deadline of a dead worker has passed: everything needs it, and ends as a failure."""

    worker: int


class Expire(NamedTuple):
    """The deadline of a job has passed, and a worker has not reported it: the scheduler cleans it up as a failure."""

    job: int


class DuplicateReport(NamedTuple):
    """Fault: a worker reports a job again. The job is in the table, or was once."""

    worker: int
    job: int


class LoseReport(NamedTuple):
    """Fault: a copied job will never be reported by this worker."""

    worker: int
    job: int


class RepeatMark(NamedTuple):
    """Fault: a mark that this worker has reported of a stream comes again: the `last` one, or the `first`."""

    worker: int
    stream: int
    which: Repeated


class LoseMark(NamedTuple):
    """Fault: the mark that a worker reports of a stream does not arrive."""

    worker: int
    stream: int


class ForgeReport(NamedTuple):
    """Fault: a worker reports a job id that was never issued."""

    worker: int


class FreeTwice(NamedTuple):
    """Fault: a client frees a free block of a tier, or ends a request that has ended."""

    what: Freed


Action = (
    Submit
    | Lookup
    | ReleaseLookup
    | Promote
    | Admit
    | Grow
    | Launch
    | Run
    | Report
    | ReportMark
    | Wake
    | Expire
    | DeclareDead
    | HandleOutput
    | PreemptUnderPressure
    | Preempt
    | Finish
    | Stop
    | Abort
    | Reset
    | DuplicateReport
    | LoseReport
    | RepeatMark
    | LoseMark
    | ForgeReport
    | FreeTwice
    | FailCopy
    | Die
)

ACTIONS: tuple[type[Action], ...] = (
    Submit,
    Lookup,
    ReleaseLookup,
    Promote,
    Admit,
    Grow,
    Launch,
    Run,
    Report,
    ReportMark,
    Wake,
    Expire,
    DeclareDead,
    HandleOutput,
    PreemptUnderPressure,
    Preempt,
    Finish,
    Stop,
    Abort,
    Reset,
    DuplicateReport,
    LoseReport,
    RepeatMark,
    LoseMark,
    ForgeReport,
    FreeTwice,
    FailCopy,
    Die,
)

UNFAIR: frozenset[type[Action]] = frozenset(
    (
        *(Submit, Preempt, Stop, Abort, Reset, FreeTwice, FailCopy, Die),
        *(DuplicateReport, LoseReport, RepeatMark, LoseMark, ForgeReport),
    )
)
"""What clients, the environment and sampled tokens may do and need not. Everything else happens if it can go on
happening."""


def key(action: Action) -> tuple[object, ...]:
    """The action with its name: what distinguishes actions of different classes."""
    return (type(action).__name__, *action)
