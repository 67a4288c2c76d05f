"""What the contract has beside what the target has, line by line, in the field's words."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from kvmodel import Action, Machine, State
from kvmodel import actions as act
from kvmodel.block_pool import HOLE, Pool
from kvmodel.contents import describe as content_words
from kvmodel.launched_step import Step
from kvmodel.owners import owners
from kvmodel.request import PHASES, Request, held
from kvmodel.state import pool_of
from kvmodel.streams import STREAMS
from kvmodel.transfer_job import CASCADE, DIRECTIONS, FORGOTTEN, PROMOTION, REPORTED, TIERS_OF, VIEWS, Job, Pair
from kvproof.targets.command import request_name
from kvproof.targets.view import TIERS, JobView, ShareView, View, expected

_NUMBERED = re.compile(r"request (\d+)")

MOST_LINES = 12
"""So many of the differences are told."""


def as_state(after: State, view: View) -> State | None:
    """The machine's state with everything replaced that is seen otherwise on the target."""
    device = Pool(
        after.device.refs if view.device_refs is None else view.device_refs,
        after.device.keys if view.device_keys is None else view.device_keys,
        after.device.free if view.device_free is None else view.device_free,
    )
    host = Pool(
        after.host.refs if view.host_refs is None else view.host_refs,
        after.host.keys if view.host_keys is None else view.host_keys,
        after.host.free if view.host_free is None else view.host_free,
    )
    second = Pool(
        after.second.refs if view.second_refs is None else view.second_refs,
        after.second.keys if view.second_keys is None else view.second_keys,
        after.second.free if view.second_free is None else view.second_free,
    )
    requests = after.requests
    if view.requests is not None and len(view.requests) == len(requests):
        requests = view.requests
    contents = (after.device_contents, after.host_contents, after.second_contents)
    if view.contents is not None:
        contents = (view.contents[0], view.contents[1], view.contents[2] if len(view.contents) > 2 else ())
    jobs = after.jobs if view.jobs is None else tuple(_jobs(after, view.jobs))
    steps = after.steps if view.launched is None else tuple(_steps(after, view.launched))
    for request in requests:
        if any(not 0 <= block < len(device.refs) for block in held(request.table)):
            return None
    return after._replace(
        device=device,
        host=host,
        second=second,
        requests=requests,
        jobs=jobs,
        steps=steps,
        device_contents=contents[0],
        host_contents=contents[1],
        second_contents=contents[2],
    )


def _jobs(after: State, seen: tuple[JobView, ...]) -> list[Job]:
    """The physical table with the target's view of each job; what the target dropped is FORGOTTEN, its copies go on."""
    by_id = {job.id: job for job in seen}
    jobs: list[Job] = []
    for job in after.jobs:
        view = by_id.pop(job.id, None)
        if view is None:
            jobs.append(job._replace(view=FORGOTTEN))
        else:
            jobs.append(job._replace(view=view.view, pairs=view.pairs, request=view.request))
    workers = len(after.device_contents)
    for view in by_id.values():
        progress = (REPORTED,) * workers
        jobs.append(Job(view.id, view.direction, view.request, view.pairs, view.view, progress))
    return sorted(jobs, key=lambda job: job.id)


def _steps(after: State, seen: tuple[ShareView, ...]) -> Iterator[Step]:
    """The launched steps without the parts that the target does not await any more."""
    awaited = {(share.step, share.request) for share in seen}
    number = -1
    for step in after.steps:
        number += not step.handled
        if step.handled:
            yield step
        else:
            yield step._replace(shares=tuple([s for s in step.shares if (number, s.request) in awaited]))


def sides(machine: Machine, after: State, view: View) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first lines in which they differ: the contract's, and the target's."""
    differing = ((wanted, found) for wanted, found in _compared(machine, after, view) if wanted != found)
    pairs = [*islice(differing, MOST_LINES)]
    return tuple([wanted for wanted, _ in pairs]), tuple([found for _, found in pairs])


def _compared(machine: Machine, after: State, view: View) -> Iterator[tuple[str, str]]:
    """Line by line: references with their owners, keys, requests, jobs, contents, what may run. Lazily: each line that
    is wanted costs a look at all owners, and a pool may have 100,000 blocks."""
    right = expected(after)
    seen_state = as_state(after, view)
    for tier in TIERS:
        refs = getattr(view, f"{tier}_refs")
        if refs is not None:
            for block in range(len(refs)):
                if refs[block] != getattr(right, f"{tier}_refs")[block]:
                    yield _block(machine, after, tier, block), _block(machine, seen_state or after, tier, block)
        keys = getattr(view, f"{tier}_keys")
        if keys is not None:
            for block, (key, wanted) in enumerate(zip(keys, getattr(right, f"{tier}_keys"), strict=False)):
                yield f"{tier[0]}{block} {_hit(machine, wanted)}", f"{tier[0]}{block} {_hit(machine, key)}"
        free = getattr(view, f"{tier}_free")
        if free is not None:
            yield _queue(tier, getattr(right, f"{tier}_free")), _queue(tier, free)
    if view.requests is not None:
        for number, (wanted_request, seen) in enumerate(zip(after.requests, view.requests, strict=False)):
            yield request_in_words(number, wanted_request), request_in_words(number, seen)
    if view.jobs is not None:
        seen_jobs = {job.id: job for job in view.jobs}
        wanted_jobs = {job.id: job for job in right.jobs or ()}
        for job_id in sorted(seen_jobs.keys() | wanted_jobs.keys()):
            yield _job(job_id, wanted_jobs.get(job_id)), _job(job_id, seen_jobs.get(job_id))
    if view.launched is not None:
        yield _launched(right.launched or ()), _launched(view.launched)
    if view.runnable is not None:
        yield _may_run(right.runnable or ()), _may_run(view.runnable)
    if view.announced is not None:
        for tier, wanted_keys, told in zip(TIERS, right.announced or (), view.announced, strict=False):
            yield _told(machine, tier, wanted_keys), _told(machine, tier, told)
    if view.has_work is not None:
        yield _steps_on(right.has_work), _steps_on(view.has_work)
    if view.contents is not None:
        for tier, wanted_rows, rows in zip("dhs", right.contents or (), view.contents, strict=False):
            for worker, (wanted_row, row) in enumerate(zip(wanted_rows, rows, strict=True)):
                for block, (wanted, found) in enumerate(zip(wanted_row, row, strict=True)):
                    names = machine.setting.key_names
                    yield (
                        f"{tier}{block} on w{worker} {content_in_words(wanted, names)}",
                        f"{tier}{block} on w{worker} {content_in_words(found, names)}",
                    )


def content_in_words(content: int, names: Sequence[str]) -> str:
    """A content as reports call it; TORN where no content of the machine is meant."""
    return content_words(content, names) if abs(content) <= len(names) else "TORN"


def owner_in_words(name: str) -> str:
    """An owner as reports call it: `request 0` is x."""
    return _NUMBERED.sub(lambda found: request_name(int(found.group(1))), name)


def _block(machine: Machine, state: State, tier: str, block: int) -> str:
    pool = pool_of(state, tier)
    names = [
        owner_in_words(name)
        for name, holding in owners(machine.setting.contract, state)
        for held in holding.of(tier)
        if held == block
    ]
    queued = ", in the free queue" if block in pool.free else ""
    return f"{tier[0]}{block} references {pool.refs[block]}: {', '.join(names) or 'nobody'}{queued}"


def _hit(machine: Machine, key: int) -> str:
    return f"can be hit as {machine.setting.key_names[key - 1]!r}" if key else "cannot be hit"


def _told(machine: Machine, tier: str, keys: tuple[int, ...]) -> str:
    names = [f"{'not ' * (key < 0)}{machine.setting.key_names[abs(key) - 1]!r}" for key in keys]
    return f"announced on the {tier}: {', '.join(names) or 'nothing'}"


def _steps_on(has_work: bool | None) -> str:
    return "must be stepped on" if has_work else "has no work left"


def _queue(tier: str, free: tuple[int, ...]) -> str:
    return f"free {tier} blocks: {' '.join(f'{tier[0]}{block}' for block in free) or 'none'}"


def request_in_words(number: int, request: Request) -> str:
    """Everything that is known of a request, in one line."""
    words = [f"{request_name(number)} {PHASES[request.phase]}"]
    if request.table:
        table = " ".join("-" if block == HOLE else f"d{block}" for block in request.table)
        words.append(f"holds {table}, {request.computed} computed, {request.stored} offered")
    if request.pins is not None:
        pins = [f"d{block}" for block in request.pins.device] + [f"h{block}" for block in request.pins.host]
        words.append(f"pins {' '.join(pins) or 'nothing'}")
    if request.jobs:
        words.append(f"waits for job {', '.join(map(str, request.jobs))}")
    words += ["outdated"] * request.outdated + ["returns"] * request.returns
    return ", ".join(words)


def _job(job_id: int, job: JobView | None) -> str:
    if job is None:
        return f"no job {job_id}"
    pairs = " ".join(pairs_in_words(job.direction, job.pairs, "->"))
    awaiting = ",".join(f"w{worker}" for worker in job.awaiting)
    words = f"job {job_id} {DIRECTIONS[job.direction]} {pairs} {VIEWS[job.view]}, awaiting {awaiting or 'nobody'}"
    return words + (f", pair {', '.join(map(str, job.failed))} failed" if job.failed else "")


def pairs_in_words(direction: int, pairs: tuple[Pair, ...], arrow: str) -> list[str]:
    """Each pair of a copy, its blocks by the initials of their tiers: `d0 -> h1`."""
    source, destination = TIERS_OF[direction]
    return [f"{source[0]}{pair.source}{arrow}{destination[0]}{pair.destination}" for pair in pairs]


def _launched(shares: tuple[ShareView, ...]) -> str:
    """What the steps compute whose output is awaited, numbered from the oldest."""
    said: dict[int, list[str]] = {}
    for share in shares:
        read, written = share.table[: share.start], share.table[share.start :]
        words = [request_name(share.request), *[f"d{block}" for block in read], *[f"+d{block}" for block in written]]
        said.setdefault(share.step, []).append(" ".join(words) + ", left" * share.left)
    steps = [f"step {step}: {'; '.join(shares)}" for step, shares in sorted(said.items())]
    return "awaited " + (" / ".join(steps) or "nothing")


def _may_run(runnable: tuple[tuple[int, int], ...]) -> str:
    return "may run: " + (", ".join(f"w{worker} {STREAMS[stream]}" for worker, stream in sorted(runnable)) or "nothing")


def choice_words(action: Action) -> str:
    match action:
        case act.Admit(number, choice) if choice is not None:
            device = " ".join(f"d{block}" for block in choice.device) or "none"
            host = " ".join(f"h{block}" for block in choice.host) or "none"
            fresh = " ".join(f"d{block}" for block in choice.fresh) or "none"
            return f"admit {request_name(number)}: device hits {device}, host hits {host}, fresh {fresh}"
        case act.Launch(choice) if choice is not None:
            computes = " ".join(f"{request_name(number)}[{start}:{end}]" for number, start, end in choice.computes)
            stores = " ".join(f"d{p.source}->h{p.destination}" for _, pairs in choice.stores for p in pairs)
            flush = " ".join(map(str, choice.flush))
            down = " ".join(pairs_in_words(CASCADE, choice.cascade, "->"))
            words = f"launch: compute {computes or 'nothing'}; store {stores or 'nothing'}; flush {flush or 'nothing'}"
            return f"{words}; cascade {down}" if down else words
        case act.Promote(number, pairs) if pairs is not None:
            return f"promote for {request_name(number)}: {' '.join(pairs_in_words(PROMOTION, pairs, '->'))}"
        case act.Reset(meaning, requests, tiers, answer):
            return " ".join(["reset", meaning, requests, *([] if tiers == "all" else [tiers]), str(answer)])
        case _:
            return " ".join([type(action).__name__.lower(), *map(str, action)])
