"""From the machine to the tables: what a state of `kvmodel` is in the terms of the specification."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from kvmodel import request as requests
from kvmodel import transfer_job as jobs
from kvmodel.contents import TORN
from kvmodel.contract import Discipline
from kvmodel.setting import Setting
from kvmodel.state import State as MachineState
from kvspecs.proof.counting import COUNTS
from kvspecs.proof.logic import Binary, Term, all_of, any_of, differ, no
from kvspecs.proof.state import GHOSTS, TABLES, Cardinalities, State, Vocabulary, in_share, in_table

GONE = 3
NONE = 0

_DEFAULTS: Mapping[str, Term] = {"B": False, "Z": 0, "J": -1, "S": -1, "D": -1, "H": -1, "R": -1, "W": 0, "K": NONE}

Entries = dict[tuple[Any, ...], Term]
Universe = Mapping[str, tuple[Any, ...]]


class Abstract(NamedTuple):
    """The tables of one state, and all elements that there are, by sort."""

    state: State
    universe: Universe


def vocabulary(setting: Setting) -> Vocabulary:
    """The discipline, and how the keys of this setting are ordered."""
    before = {
        (key, later)
        for keys in setting.total_keys
        for position, key in enumerate(keys)
        for later in keys[position + 1 :]
    }
    prompts = {(number, key) for number, keys in enumerate(setting.prompt_keys) for key in keys}
    return constants(
        setting.contract.discipline,
        setting.contract.marks,
        setting.contract.depth > 1,
        lambda k, l: (k, l) in before,  # noqa: E741
        lambda r, k: (r, k) in prompts,
    )


def constants(discipline: Discipline, marks: Term, deep: Term, below: Binary, in_prompt: Binary) -> Vocabulary:
    """The machine's numbers for phases and views, and how keys are ordered."""
    return Vocabulary(
        discipline=discipline,
        marks=marks,
        deep=deep,
        none=NONE,
        torn=TORN,
        below=below,
        in_prompt=in_prompt,
        absent=requests.ABSENT,
        waiting=requests.WAITING,
        loading=requests.LOADING,
        running=requests.RUNNING,
        draining=requests.DRAINING,
        done=requests.DONE,
        live=jobs.LIVE,
        abandoned=jobs.ABANDONED,
        forgotten=jobs.FORGOTTEN,
        gone=GONE,
    )


def abstract(setting: Setting, w: Vocabulary, machine: MachineState) -> Abstract:
    """The tables of a machine's state. What the machine does not remember of the past is reconstructed."""
    entries, universe = entries_of(setting, machine)
    return Abstract(_state(w, entries, universe), universe)


def entries_of(setting: Setting, machine: MachineState) -> tuple[Mapping[str, Entries], Universe]:
    """The same, as the entries of each table that are not its default (`defaults`), and all elements by sort."""
    entries: dict[str, Entries] = {name: {} for name in TABLES}
    _pools(machine, entries)
    for number, request in enumerate(machine.requests):
        _request(setting, number, request, entries)
    for job in machine.jobs:
        _job(job, entries)
    for step in machine.steps:
        _step(setting, step, entries)
    if setting.contract.marks:
        _marks(machine, entries)
    _ghosts(machine, entries)
    entries["next_job"][()] = machine.next_job
    universe: Universe = {
        "D": tuple(range(len(machine.device.refs))),
        "H": tuple(range(len(machine.host.refs))),
        "R": tuple(range(len(machine.requests))),
        "W": tuple(range(len(machine.device_contents))),
        "K": tuple(range(1, len(setting.key_names) + 1)),
        "J": tuple(job.id for job in machine.jobs),
        "S": tuple(step.id for step in machine.steps),
    }
    return entries, universe


def defaults(w: Vocabulary) -> Mapping[str, Term]:
    """By table, the value of the entries that are not there."""
    by_sort = {**_DEFAULTS, "P": w.absent, "V": w.gone}
    return {name: by_sort[value] for name, (_, value) in TABLES.items()}


def _lookup(entries: Entries, default: Term) -> Callable[..., Term]:
    return lambda *arguments: entries.get(arguments, default)


def _state(w: Vocabulary, entries: Mapping[str, Entries], universe: Universe) -> State:
    tables = {name: _lookup(entries[name], default) for name, default in defaults(w).items()}
    bare = State(counts=None, **tables)  # type: ignore[arg-type]
    return State(counts=counted(w, bare, universe), **tables)


def counted(w: Vocabulary, s: State, universe: Universe) -> Cardinalities:
    """The cardinalities as what they are: numbers of members."""

    def size(name: str) -> Callable[[Term], Term]:
        count = COUNTS[name]
        return lambda block: sum(1 for x in universe[count.counted] if count.member(w, s, x, block))

    return Cardinalities(**{name: size(name) for name in COUNTS})


def _pools(machine: MachineState, entries: dict[str, Entries]) -> None:
    for tier, pool, contents in (
        ("device", machine.device, machine.device_contents),
        ("host", machine.host, machine.host_contents),
    ):
        for block, refs in enumerate(pool.refs):
            entries[f"{tier}_refs"][(block,)] = refs
            entries[f"{tier}_key"][(block,)] = pool.keys[block]
            entries[f"{tier}_queued"][(block,)] = pool.free.count(block)
            for worker, held in enumerate(contents):
                entries[f"{tier}_holds"][block, worker] = abs(held[block])
                entries[f"{tier}_old"][block, worker] = held[block] < 0


def _request(setting: Setting, number: int, request: requests.Request, entries: dict[str, Entries]) -> None:
    entries["phase"][(number,)] = request.phase
    entries["outdated"][(number,)] = request.outdated
    entries["returns"][(number,)] = request.returns
    for position, block in enumerate(request.table):
        entries["table"][number, block] = True
        entries["stands_for"][number, block] = setting.total_keys[number][position]
        entries["computed"][number, block] = position < request.computed
    for job in request.jobs:
        entries["awaits"][number, job] = True
    if request.pins is None:
        return
    keys = setting.prompt_keys[number]
    for position, block in enumerate(request.pins.device):
        entries["pins_device"][number, block] = True
        entries["found_device"][number, keys[position]] = block
    for position, block in enumerate(request.pins.host, len(request.pins.device)):
        entries["pins_host"][number, block] = True
        entries["found_host"][number, keys[position]] = block


def _job(job: jobs.Job, entries: dict[str, Entries]) -> None:
    load = job.direction == jobs.LOAD
    one = (job.id,)
    entries["view"][one] = job.view
    entries["is_load"][one] = load
    entries["has_request"][one] = job.request != jobs.NONE
    entries["request"][one] = job.request
    entries["sent"][one] = not jobs.is_queued(job)
    entries["flushed"][one] = job.flushed
    entries["waits_for_step"][one] = job.after_step
    bad = jobs.failed_positions(job)
    for position, pair in enumerate(job.pairs):
        device, host = (pair.destination, pair.source) if load else (pair.source, pair.destination)
        entries["job_device"][job.id, device] = True
        entries["job_host"][job.id, host] = True
        entries["device_of"][job.id, host] = device
        entries["host_of"][job.id, device] = host
        entries["carries"][job.id, host] = pair.key
        entries["failed"][job.id, host] = position in bad
    for worker, progress in enumerate(job.progress):
        entries["copied"][job.id, worker] = progress >= jobs.COPIED
        entries["reported"][job.id, worker] = progress == jobs.REPORTED
        entries["lost"][job.id, worker] = progress == jobs.LOST
    entries["owes"][one] = next((x for x, progress in enumerate(job.progress) if progress != jobs.REPORTED), 0)
    for other in job.after_jobs:
        entries["waits_for_job"][job.id, other] = True


def _step(setting: Setting, step: Any, entries: dict[str, Entries]) -> None:
    entries["in_steps"][(step.id,)] = True
    entries["handled"][(step.id,)] = step.handled
    if not step.handled:
        entries["ahead" if entries["awaited"] else "awaited"][()] = step.id
    for worker, ran in enumerate(step.ran):
        entries["ran"][step.id, worker] = ran
    entries["laggard"][(step.id,)] = step.ran.index(False) if False in step.ran else 0
    for job in step.after_jobs:
        entries["step_waits_for"][step.id, job] = True
    for share in step.shares:
        entries["shares"][step.id, share.request] = True
        entries["left"][step.id, share.request] = share.left
        for position, block in enumerate(share.table):
            entries["share_table"][step.id, share.request, block] = True
            entries["step_key"][step.id, block] = setting.total_keys[share.request][position]
            entries["step_old"][step.id, block] = share.outdated
            if position >= share.start:
                entries["writes"][step.id, block] = True
                entries["writer"][step.id, block] = share.request


def _marks(machine: MachineState, entries: dict[str, Entries]) -> None:
    """The least marks that cover all that is reported, as far as it is in the table."""
    for job in machine.jobs:
        marks = entries["loads_marked" if job.direction == jobs.LOAD else "stores_marked"]
        for worker, progress in enumerate(job.progress):
            if progress == jobs.REPORTED:
                marks[(worker,)] = job.id + 1


def _ghosts(machine: MachineState, entries: dict[str, Entries]) -> None:
    """Which step wrote what, as far as it is on its way."""
    writers: dict[int, list[int]] = {}
    for step, block in entries["writes"]:
        writers.setdefault(block, []).append(step)
    for block, steps in writers.items():
        entries["wrote"][(block,)] = max(steps)
        for step in machine.steps:
            entries["read_from"][step.id, block] = max((f for f in steps if f < step.id), default=-1)
        for job in machine.jobs:
            entries["stored_from"][job.id, block] = max((f for f in steps if f <= job.after_step), default=-1)
    _launches(machine, entries)


Operation = tuple[str, int]


def _launches(machine: MachineState, entries: dict[str, Entries]) -> None:
    """Which launch sent what, as far as it shows: the least numbers that put every operation after those that it has to
    come after."""
    sent = [job for job in machine.jobs if not jobs.is_queued(job)]
    later: list[tuple[Operation, Operation, int]] = []
    for job in sent:
        one = ("J", job.id)
        later += [(("J", other), one, 1) for other in job.after_jobs]
        later += [(("J", i.id), one, 0) for i in sent if i.direction == job.direction and i.id < job.id]
        later += [(("S", step.id), one, 0) for step in machine.steps if step.id <= job.after_step]
    for step in machine.steps:
        later += [(("J", other), ("S", step.id), 1) for other in step.after_jobs]
        later += [(("S", f.id), ("S", step.id), 1) for f in machine.steps if f.id < step.id]
    numbers = {("J", job.id): 0 for job in sent} | {("S", step.id): 0 for step in machine.steps}
    later = [(first, second, by) for first, second, by in later if first in numbers]
    for _ in range(len(numbers) + 1):
        for first, second, by in later:
            numbers[second] = max(numbers[second], numbers[first] + by)
    for (sort, number), launch in numbers.items():
        entries["sent_at" if sort == "J" else "step_at"][(number,)] = launch
    entries["launches"][()] = max(numbers.values(), default=-1) + 1


# What is compared after a transition: everything but what means nothing any more, such as the pairs of a job that is
# gone. The machine clears some of it, and some not; nobody reads it.


def _is_pending(s: State, u: Universe, j: Term) -> Term:
    """Some worker has yet to copy it."""
    return all_of(s.sent(j), any_of(*(no(s.copied(j, x)) for x in u["W"])))


def _in_step(s: State, u: Universe, g: Term, d: Term) -> Term:
    return all_of(s.in_steps(g), any_of(*(in_share(s, g, r, d) for r in u["R"])))


def _holds_something(w: Vocabulary, key: Term) -> Term:
    return all_of(differ(key, w.none), differ(key, w.torn))


Matters = Callable[..., Term]

_HELD: Matters = lambda w, s, u, r, d: s.table(r, d)  # noqa: E731
_ROW: Matters = lambda w, s, u, j, *rest: in_table(w, s, j)  # noqa: E731
_PAIR: Matters = lambda w, s, u, j, h: all_of(in_table(w, s, j), s.job_host(j, h))  # noqa: E731
_STEP: Matters = lambda w, s, u, g, *rest: s.in_steps(g)  # noqa: E731

MATTERS: Mapping[str, Matters] = {
    "device_old": lambda w, s, u, d, x: _holds_something(w, s.device_holds(d, x)),
    "host_old": lambda w, s, u, h, x: _holds_something(w, s.host_holds(h, x)),
    "stands_for": _HELD,
    "computed": _HELD,
    "outdated": lambda w, s, u, r: s.phase(r) == w.running,
    "returns": lambda w, s, u, r: s.phase(r) == w.draining,
    "found_device": lambda w, s, u, r, k: s.pins_device(r, s.found_device(r, k)),
    "found_host": lambda w, s, u, r, k: s.pins_host(r, s.found_host(r, k)),
    "is_load": _ROW,
    "has_request": _ROW,
    "request": lambda w, s, u, j: all_of(in_table(w, s, j), s.has_request(j)),
    "job_device": _ROW,
    "job_host": _ROW,
    "device_of": _PAIR,
    "host_of": lambda w, s, u, j, d: all_of(in_table(w, s, j), s.job_device(j, d)),
    "carries": _PAIR,
    "failed": _PAIR,
    "sent": _ROW,
    "copied": _ROW,
    "reported": _ROW,
    "lost": _ROW,
    "flushed": lambda w, s, u, j: _is_pending(s, u, j),
    "waits_for_job": lambda w, s, u, j, i: all_of(_is_pending(s, u, j), _is_pending(s, u, i)),
    "waits_for_step": lambda w, s, u, j: all_of(_is_pending(s, u, j), s.in_steps(s.waits_for_step(j))),
    "handled": _STEP,
    "ran": _STEP,
    "shares": _STEP,
    "left": lambda w, s, u, g, r: all_of(s.in_steps(g), no(s.handled(g)), s.shares(g, r)),
    "share_table": lambda w, s, u, g, r, d: all_of(s.in_steps(g), s.shares(g, r)),
    "step_key": lambda w, s, u, g, d: _in_step(s, u, g, d),
    "step_old": lambda w, s, u, g, d: _in_step(s, u, g, d),
    "writes": _STEP,
    "writer": lambda w, s, u, g, d: all_of(s.in_steps(g), s.writes(g, d)),
    "step_waits_for": lambda w, s, u, g, j: all_of(s.in_steps(g), _is_pending(s, u, j)),
}
"""When an entry of a table means something; tables that are not named always do."""


def differences(w: Vocabulary, told: State, found: Abstract) -> Iterator[str]:
    """Where the tables that an update tells differ from those of the machine's state, entry by entry."""
    s, u = found.state, found.universe
    for name, (arguments, _) in TABLES.items():
        if name in GHOSTS:
            continue
        table, told_table, matters = getattr(s, name), getattr(told, name), MATTERS.get(name)
        for elements in product(*(u[sort] for sort in arguments)):
            if matters is not None and not matters(w, s, u, *elements):
                continue
            is_, said = table(*elements), told_table(*elements)
            if is_ != said:
                yield f"{name}({', '.join(map(str, elements))}) is {is_} and the update says {said}"


def elements(universe: Universe, sorts: str) -> Iterable[tuple[int, ...]]:
    return product(*(universe[sort] for sort in sorts))
