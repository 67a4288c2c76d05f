"""A picture of one state: a cell for each request, block, job and stream, in the words of reports."""

from collections.abc import Iterator

from kvmodel import Machine, State
from kvmodel.launched_step import Step
from kvmodel.owners import owners
from kvmodel.request import PHASES
from kvmodel.scope import Scope
from kvmodel.streams import STREAMS, runnable
from kvmodel.transfer_job import CASCADE, DIRECTIONS, FORGOTTEN, LAUNCHED, PROGRESS, VIEWS, Job
from kvproof.report.story import Cell, Lane
from kvproof.targets.command import request_name
from kvproof.targets.side_by_side import content_in_words, owner_in_words, pairs_in_words, request_in_words

MOST_CELLS = 500_000
"""Cells in all the pictures of one story (count): some hundred bytes each."""


def cells_of(scope: Scope) -> int:
    """How many cells a picture has, those of jobs left out."""
    blocks = scope.device_blocks + scope.host_blocks + scope.second_blocks
    return blocks + len(scope.prompts) + len(STREAMS) * scope.workers


def lanes_of(machine: Machine, states: list[State]) -> tuple[Lane, ...]:
    """Every lane that these states have anything in."""
    scope = machine.setting.scope
    streams = STREAMS if scope.second_blocks else STREAMS[:CASCADE]
    jobs = sorted({job.id for state in states for job in state.jobs})
    return (
        *(Lane(request_name(number), "request") for number in range(len(scope.prompts))),
        *(Lane(f"d{block}", "device block") for block in range(scope.device_blocks)),
        *(Lane(f"h{block}", "host block") for block in range(scope.host_blocks)),
        *(Lane(f"s{block}", "second block") for block in range(scope.second_blocks)),
        *(Lane(f"job {number}", "job") for number in jobs),
        *(Lane(f"w{worker} {stream}", "stream") for worker in range(scope.workers) for stream in streams),
    )


def picture_of(machine: Machine, state: State) -> dict[str, Cell]:
    """How everything stands in a state."""
    return dict([*_requests(state), *_blocks(machine, state), *_jobs(state), *_streams(state)])


def _requests(state: State) -> Iterator[tuple[str, Cell]]:
    for number, request in enumerate(state.requests):
        phase = PHASES[request.phase]
        words = [phase]
        if request.table:
            words.append(f"{request.computed}/{len(request.table)}")
        if request.jobs:
            words.append("waits for " + ", ".join(f"job {job}" for job in request.jobs))
        yield request_name(number), Cell(" ".join(words), phase.lower(), request_in_words(number, request))


def _blocks(machine: Machine, state: State) -> Iterator[tuple[str, Cell]]:
    held: dict[str, list[str]] = {}
    for name, holding in owners(machine.setting.contract, state):
        for block in holding.device:
            held.setdefault(f"d{block}", []).append(owner_in_words(name))
        for block in holding.host:
            held.setdefault(f"h{block}", []).append(owner_in_words(name))
        for block in holding.second:
            held.setdefault(f"s{block}", []).append(owner_in_words(name))
    names = machine.setting.key_names
    for letter, pool, contents in (
        ("d", state.device, state.device_contents),
        ("h", state.host, state.host_contents),
        ("s", state.second, state.second_contents),
    ):
        places = {block: place for place, block in enumerate(pool.free)}
        for block, (count, key) in enumerate(zip(pool.refs, pool.keys, strict=True)):
            name = f"{letter}{block}"
            by = held.get(name, [])
            hit = f' "{names[key - 1]}"' if key else ""
            short = " ".join(owner.replace(" (LIVE)", "") for owner in by)
            kind = "held" if by else ("cached" if key else "free")
            if count != len(by):
                kind, short = "wrong", f"{short or 'nobody'} ({count} counted)"
            rows = [content_in_words(row[block], names) for row in contents]
            holds = rows[0] if len(set(rows)) == 1 else ", ".join(f"w{w} {row}" for w, row in enumerate(rows))
            queued = f", number {places[block] + 1} in the free queue" if block in places else ""
            detail = (
                f"{name}: {count} reference{'' if count == 1 else 's'}, owned by {', '.join(by) or 'nobody'}{queued}; "
                f"{f'can be hit as{hit}' if key else 'cannot be hit'}; holds {holds}"
            )
            yield name, Cell(f"{short or 'free'}{hit}", kind, detail)


def _jobs(state: State) -> Iterator[tuple[str, Cell]]:
    for job in state.jobs:
        pairs = ", ".join(pairs_in_words(job.direction, job.pairs, " -> "))
        progress = [PROGRESS[step] for step in job.progress]
        stands = progress[0] if len(set(progress)) == 1 else ", ".join(f"w{w} {p}" for w, p in enumerate(progress))
        view = VIEWS[job.view]
        detail = f"job {job.id}: {DIRECTIONS[job.direction]} {pairs}; {view}; {stands}" + (
            "; later launches wait for it" if job.flushed else ""
        )
        short = stands if job.view not in (1, FORGOTTEN) else f"{view} {stands}"
        yield f"job {job.id}", Cell(f"{DIRECTIONS[job.direction]} {short}", view.lower(), detail)


def _streams(state: State) -> Iterator[tuple[str, Cell]]:
    ready = set(runnable(state))
    for worker in range(len(state.device_contents)):
        waiting: list[list[str]] = [[] for _ in STREAMS]
        for step in state.steps:
            if not step.ran[worker]:
                waiting[0].append(_step_in_words(step))
        for job in state.jobs:
            if job.progress[worker] == LAUNCHED:
                waiting[job.direction].append(_copy_in_words(job))
        for stream, operations in enumerate(waiting):
            if operations:
                may = (worker, stream) in ready
                detail = f"w{worker} {STREAMS[stream]}: {', '.join(operations)}; " + (
                    "the first may run now" if may else "the first waits"
                )
                kind = "ready" if may else "waits"
                yield f"w{worker} {STREAMS[stream]}", Cell(", ".join(operations), kind, detail)


def _step_in_words(step: Step) -> str:
    return f"step {step.id}"


def _copy_in_words(job: Job) -> str:
    return f"job {job.id}"
