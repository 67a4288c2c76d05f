"""The tables of the specification: the machine's state as functions and relations over sorts of any size.

A request's table is a set of blocks, each of which stands for a key; a job is a set of pairs. Positions and queues are
left out (which block is taken next is policy); everything that the contract speaks of is here.

Sorts, by letter: D device block, H host block, R request, W worker, K key (a block's hash: it stands for the whole
prefix up to it), J job id, S step id, Z count, B truth value, P phase of a request, V view of a job.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, get_type_hints

from kvmodel.contract import Discipline
from kvspecs.proof.logic import Binary, Term, Ternary, Unary, all_of, any_of, differ, no, pick


@dataclass(frozen=True)
class Vocabulary:
    """What never changes: the discipline, how workers report, how deep the pipeline is, the names of phases and views,
    and how keys are ordered.

    marks      workers report high-water marks, rather than single jobs
    deep       a step may be launched before the output of the one before it is handled (depth 2)
    none       no key
    torn       what a failed copy leaves behind. Nothing is assumed of it: it might be anything
    below      below(k, l): the prefix that k stands for is a proper prefix of l's
    in_prompt  in_prompt(r, k): k is one of the keys of the request's prompt
    """

    discipline: Discipline
    marks: Term
    deep: Term
    none: Term
    torn: Term
    below: Binary
    in_prompt: Binary
    absent: Term
    waiting: Term
    loading: Term
    running: Term
    draining: Term
    done: Term
    live: Term
    abandoned: Term
    forgotten: Term
    gone: Term

    @property
    def pins(self) -> bool:
        return self.discipline == "pinning"


GHOST = "ghost"


@dataclass(frozen=True)
class State:
    """One state. Every field but `counts` is a table; a table without arguments is called too: `s.next_job()`."""

    counts: "Cardinalities"

    device_refs: Annotated[Unary, "D>Z", "references of a device block"]
    device_key: Annotated[Unary, "D>K", "key under which it can be hit, or none"]
    device_queued: Annotated[Unary, "D>Z", "how often it stands in the free queue"]
    host_refs: Annotated[Unary, "H>Z", "references of a host block"]
    host_key: Annotated[Unary, "H>K", "key under which it can be hit, or none"]
    host_queued: Annotated[Unary, "H>Z", "how often it stands in the free queue"]
    device_holds: Annotated[Binary, "DW>K", "what a worker's copy of a device block truly holds, or none"]
    device_old: Annotated[Binary, "DW>B", "that is from before an `invalidate` reset"]
    host_holds: Annotated[Binary, "HW>K", "what a worker's copy of a host block truly holds, or none"]
    host_old: Annotated[Binary, "HW>B", "that is from before an `invalidate` reset"]

    phase: Annotated[Unary, "R>P", "phase of a request"]
    table: Annotated[Binary, "RD>B", "the block is in the request's table"]
    stands_for: Annotated[Binary, "RD>K", "the key for which a block stands in the request's table"]
    computed: Annotated[Binary, "RD>B", "the KV of that block exists"]
    outdated: Annotated[Unary, "R>B", "it survived an `invalidate` reset"]
    returns: Annotated[Unary, "R>B", "DRAINING: it will wait again, rather than be done"]
    pins_device: Annotated[Binary, "RD>B", "its lookup pins this device block"]
    pins_host: Annotated[Binary, "RH>B", "its lookup pins this host block"]
    found_device: Annotated[Binary, "RK>D", "the device block in which its lookup found a key"]
    found_host: Annotated[Binary, "RK>H", "the host block in which its lookup found a key"]
    awaits: Annotated[Binary, "RJ>B", "it waits for this job"]

    view: Annotated[Unary, "J>V", "the scheduler's view of a job, or gone: it is not in the job table"]
    is_load: Annotated[Unary, "J>B", "host to device, rather than device to host"]
    has_request: Annotated[Unary, "J>B", "it belongs to a request"]
    request: Annotated[Unary, "J>R", "that request"]
    job_device: Annotated[Binary, "JD>B", "the device side of one of its pairs"]
    job_host: Annotated[Binary, "JH>B", "the host side of one of its pairs"]
    device_of: Annotated[Binary, "JH>D", "the device block paired with a host block"]
    host_of: Annotated[Binary, "JD>H", "the host block paired with a device block"]
    carries: Annotated[Binary, "JH>K", "the key of that pair"]
    failed: Annotated[Binary, "JH>B", "some worker has failed to copy that pair"]
    sent: Annotated[Unary, "J>B", "it was launched: the workers have it"]
    copied: Annotated[Binary, "JW>B", "a worker has run its copies"]
    reported: Annotated[Binary, "JW>B", "a worker has reported it"]
    lost: Annotated[Binary, "JW>B", "a worker will never report it"]
    flushed: Annotated[Unary, "J>B", "later launches wait for its copies"]
    waits_for_job: Annotated[Binary, "JJ>B", "the first runs on a worker after the second has run there"]
    waits_for_step: Annotated[Unary, "J>S", "it runs on a worker after this step's compute has run there, or -1"]
    next_job: Annotated[Callable[[], Term], ">J", "id of the next job"]

    in_steps: Annotated[Unary, "S>B", "the step is in the table of launched steps"]
    handled: Annotated[Unary, "S>B", "its output is handled"]
    ran: Annotated[Binary, "SW>B", "a worker has run its compute"]
    shares: Annotated[Binary, "SR>B", "it computes for this request"]
    left: Annotated[Binary, "SR>B", "that request has gone: the step owns the references"]
    share_table: Annotated[Ternary, "SRD>B", "the block is in that request's share of the step"]
    step_key: Annotated[Binary, "SD>K", "the key for which a block stands in the step"]
    step_old: Annotated[Binary, "SD>B", "it computes from KV of before an `invalidate` reset"]
    writes: Annotated[Binary, "SD>B", "it writes the block; otherwise it reads it"]
    writer: Annotated[Binary, "SD>R", "for which request it does"]
    step_waits_for: Annotated[Binary, "SJ>B", "it runs on a worker after that job's copies have run there"]
    awaited: Annotated[Callable[[], Term], ">S", "the oldest step whose output is not handled, or -1"]
    ahead: Annotated[Callable[[], Term], ">S", "the step that was launched before that output was handled, or -1"]

    wrote: Annotated[Unary, "D>S", "the last step that was launched to write the block", GHOST]
    read_from: Annotated[Binary, "SD>S", "the step that wrote what this one reads", GHOST]
    stored_from: Annotated[Binary, "JD>S", "the step that wrote what this store reads", GHOST]
    stores_marked: Annotated[Unary, "W>J", "by its marks, a worker has copied all stores with ids below this", GHOST]
    loads_marked: Annotated[Unary, "W>J", "by its marks, a worker has copied all loads with ids below this", GHOST]
    laggard: Annotated[Unary, "S>W", "a worker that has yet to run a handled step", GHOST]
    owes: Annotated[Unary, "J>W", "a worker that has yet to report a job", GHOST]
    launches: Annotated[Callable[[], Term], ">Z", "how many launches there were", GHOST]
    sent_at: Annotated[Unary, "J>Z", "the launch that sent a job", GHOST]
    step_at: Annotated[Unary, "S>Z", "the launch that sent a step", GHOST]


@dataclass(frozen=True)
class Cardinalities:
    """How many owners of each sort a block has: sizes of finite sets, which formulas may only compare and add.

    On the device: requests that hold it while RUNNING and through no launched step, through the awaited step alone,
    through the one ahead alone, through both, LOADING, DRAINING; requests that left the awaited step, or the one ahead;
    lookups; jobs (under pinning) that are queued, launched and
    live, abandoned. On the host: lookups and the same jobs.
    """

    idle: Unary
    computing: Unary
    ahead: Unary
    twice: Unary
    loading: Unary
    draining: Unary
    left: Unary
    left_ahead: Unary
    looked_up: Unary
    queued: Unary
    launched: Unary
    abandoned: Unary
    host_looked_up: Unary
    host_queued: Unary
    host_launched: Unary
    host_abandoned: Unary


_NOTES: Mapping[str, tuple[str, ...]] = {
    name: hint.__metadata__ for name, hint in get_type_hints(State, include_extras=True).items() if name != "counts"
}

TABLES: Mapping[str, tuple[str, str]] = {
    name: (notes[0].partition(">")[0], notes[0].partition(">")[2]) for name, notes in _NOTES.items()
}
"""Name of each table -> sorts of its arguments, sort of its value."""

MEANINGS: Mapping[str, str] = {name: notes[1] for name, notes in _NOTES.items()}

GHOSTS = frozenset(name for name, notes in _NOTES.items() if GHOST in notes[2:])
"""Tables that the machine does not have: they remember what it could derive."""


def in_table(w: Vocabulary, s: State, j: Term) -> Term:
    """The job is in the physical job table."""
    return differ(s.view(j), w.gone)


def keeps_references(w: Vocabulary, s: State, j: Term) -> Term:
    """LIVE or ABANDONED: it has not been forgotten."""
    return any_of(s.view(j) == w.live, s.view(j) == w.abandoned)


def live_store(w: Vocabulary, s: State, j: Term) -> Term:
    return all_of(s.view(j) == w.live, no(s.is_load(j)))


def live_load(w: Vocabulary, s: State, j: Term) -> Term:
    return all_of(s.view(j) == w.live, s.is_load(j))


def publishes_into(s: State, j: Term, device: Term, host: Term) -> Term:
    """What the job carries could be hit in one of these tiers once it is complete: a load on the device, a store on the
    host."""
    return pick(s.is_load(j), device, host)


def pending(s: State, j: Term, x: Term) -> Term:
    """The worker has yet to run the copies of a launched job, whatever the scheduler thinks of it."""
    return all_of(s.sent(j), no(s.copied(j, x)))


def marked(s: State, j: Term, x: Term) -> Term:
    """The worker has copied the job, as its marks say."""
    return j < pick(s.is_load(j), s.loads_marked(x), s.stores_marked(x))


def computing(s: State, g: Term, x: Term) -> Term:
    """The worker has yet to run the compute of a launched step."""
    return all_of(s.in_steps(g), no(s.ran(g, x)))


def in_share(s: State, g: Term, r: Term, d: Term) -> Term:
    """The block is in the share that a request has in a step."""
    return all_of(s.shares(g, r), s.share_table(g, r, d))


def awaiting(s: State) -> tuple[Term, Term]:
    """The steps whose output is not handled, or -1: the older one, and the one launched ahead of that output."""
    return s.awaited(), s.ahead()


def is_full(w: Vocabulary, s: State) -> Term:
    """As many outputs are awaited as the pipeline is deep."""
    return any_of(s.ahead() >= 0, all_of(no(w.deep), s.awaited() >= 0))


def is_awaited(s: State, g: Term) -> Term:
    return all_of(g >= 0, any_of(*(g == h for h in awaiting(s))))


def in_step(s: State, g: Term, r: Term) -> Term:
    """The step computes for the request, which has not left it."""
    return all_of(g >= 0, s.shares(g, r), no(s.left(g, r)))


def in_launched_step(s: State, r: Term) -> Term:
    """A launched step whose output is not handled computes for the request, which has not left it."""
    return any_of(*(in_step(s, g, r) for g in awaiting(s)))


def through(s: State, g: Term, r: Term, d: Term) -> Term:
    """The step computes for the request in that block."""
    return all_of(in_step(s, g, r), s.share_table(g, r, d))


def in_awaited(s: State, r: Term, d: Term) -> Term:
    """The block is in the request's share of a step whose output is not handled, whether the request left it or not."""
    return any_of(*(all_of(g >= 0, in_share(s, g, r, d)) for g in awaiting(s)))


def written_by(s: State, g: Term, d: Term) -> Term:
    """The step, if there is one, writes the block."""
    return all_of(g >= 0, s.writes(g, d))


def written_by_awaited(s: State, d: Term) -> Term:
    return any_of(*(written_by(s, g, d) for g in awaiting(s)))


def reached(s: State, r: Term, d: Term) -> Term:
    """The KV of the request's block exists, or will once the step that is awaited has run."""
    return any_of(s.computed(r, d), through(s, s.awaited(), r, d))


def yields(s: State, g: Term, d: Term, x: Term, key: Term, old: Term) -> Term:
    """On a worker the block holds the key's KV; or it will, once the step `g`, which is on its way there, has run."""
    later = all_of(computing(s, g, x), s.writes(g, d))
    return any_of(
        all_of(later, s.step_key(g, d) == key, s.step_old(g, d) == old),
        all_of(no(later), s.device_holds(d, x) == key, s.device_old(d, x) == old),
    )


def promised(s: State, d: Term, x: Term, key: Term, old: Term) -> Term:
    """Whoever reads the block on that worker, after what is launched, finds this content."""
    return yields(s, s.wrote(d), d, x, key, old)
