"""Canonical form: states that differ in the names of blocks, jobs, steps and workers alone become equal.

Blocks are renamed by first occurrence along the free queue, tables, pins, launched steps and jobs; jobs and steps by
age; workers by what they have done and hold. Linear, and exact: the policy's choices do not depend on names. Contents
that no operation can read any more are blanked: a block's bytes stay until something writes them, and states that
differ in dead bytes alone behave alike. (A rule that did read dead bytes would read UNWRITTEN, and be caught.)
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kvmodel.block_pool import Pool
from kvmodel.contents import Contents
from kvmodel.contract import Contract
from kvmodel.launched_step import Share, Step
from kvmodel.request import LOADING, RUNNING, Pins, Request, held
from kvmodel.state import State, is_dead
from kvmodel.transfer_job import CASCADE, COPIED, LIVE, LOAD, LOST, NONE, PROMOTION, STORE, Job, Pair


class Renaming(NamedTuple):
    """Old name to new. device, host, second: by block. workers: new order.

    jobs   new id of each job in the table
    steps  new id of each step in the table
    """

    device: list[int]
    host: list[int]
    jobs: dict[int, int]
    steps: dict[int, int]
    workers: tuple[int, ...]
    second: list[int]


def renaming_of(contract: Contract, state: State) -> tuple[Renaming, bool, bool, bool]:
    """The renaming that makes a state canonical (workers not yet ordered), and whether it keeps each tier's names."""
    device, device_same = _names(len(state.device.refs), state.device.free, _device_occurrences, state)
    host, host_same = _names(len(state.host.refs), state.host.free, _host_occurrences, state)
    second, second_same = list[int](), True
    if state.second_contents:
        second, second_same = _names(len(state.second.refs), state.second.free, _second_occurrences, state)
    base = 1 if state.faults_left.duplicates and state.next_job > len(state.jobs) else 0
    jobs = {job.id: base + position for position, job in enumerate(state.jobs)}
    steps = {step.id: position for position, step in enumerate(state.steps)}
    workers = tuple(range(len(state.device_contents)))
    return Renaming(device, host, jobs, steps, workers, second), device_same, host_same, second_same


def _names(
    blocks: int, free: tuple[int, ...], occurrences: Callable[[State], list[int]], state: State
) -> tuple[list[int], bool]:
    names = [-1] * blocks
    fresh = 0
    for block in free:
        names[block] = fresh
        fresh += 1
    if fresh < blocks:
        for block in occurrences(state):
            if names[block] < 0:
                names[block] = fresh
                fresh += 1
        for block in range(blocks):
            if names[block] < 0:
                names[block] = fresh
                fresh += 1
    return names, names == list(range(blocks))


def _device_occurrences(state: State) -> list[int]:
    found: list[int] = []
    for request in state.requests:
        found.extend(held(request.table))
        if request.pins is not None:
            found.extend(request.pins.device)
    for step in state.steps:
        for share in step.shares:
            found.extend(held(share.table))
    for job in state.jobs:
        if job.direction == STORE:
            found.extend([pair.source for pair in job.pairs])
        elif job.direction == LOAD:
            found.extend([pair.destination for pair in job.pairs])
    return found


def _host_occurrences(state: State) -> list[int]:
    found: list[int] = []
    for request in state.requests:
        if request.pins is not None:
            found.extend(request.pins.host)
    for job in state.jobs:
        if job.direction in (STORE, PROMOTION):
            found.extend([pair.destination for pair in job.pairs])
        else:
            found.extend([pair.source for pair in job.pairs])
    return found


def _second_occurrences(state: State) -> list[int]:
    found: list[int] = []
    for job in state.jobs:
        if job.direction == CASCADE:
            found.extend([pair.destination for pair in job.pairs])
        elif job.direction == PROMOTION:
            found.extend([pair.source for pair in job.pairs])
    return found


def live_contents(state: State) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Contents of device, host and second tier, blanked where no operation can read them any more."""
    device_rows: list[list[int]] = []
    host_rows: list[list[int]] = []
    for worker, (device, host) in enumerate(zip(state.device_contents, state.host_contents, strict=True)):
        device_row = [content if key else 0 for content, key in zip(device, state.device.keys, strict=True)]
        host_row = [content if key else 0 for content, key in zip(host, state.host.keys, strict=True)]
        for request in state.requests:
            if request.computed and (request.phase == RUNNING or request.phase == LOADING):
                for block in held(request.table[: request.computed]):
                    device_row[block] = device[block]
        unrun: list[Step] = []
        for step in state.steps:
            if not step.ran[worker]:
                if not is_dead(state, worker):
                    unrun.append(step)
            elif not step.handled:
                for share in step.shares:
                    if not share.left:
                        for block in held(share.table):
                            device_row[block] = device[block]
        if unrun:
            _before_computes(unrun, device, device_row)
        for job in state.jobs:
            pending = job.progress[worker] < COPIED
            if job.direction >= CASCADE or (not pending and not _may_still_publish(state, job, worker)):
                continue
            if (job.direction == STORE) == pending:
                for pair in job.pairs:
                    block = pair.source if pending else pair.destination
                    if not (unrun and pending and _is_written_first(unrun, job, block)):
                        device_row[block] = device[block]
            else:
                for pair in job.pairs:
                    block = pair.source if pending else pair.destination
                    host_row[block] = host[block]
        device_rows.append(device_row)
        host_rows.append(host_row)
    return device_rows, host_rows, _live_below_host(state, host_rows) if state.second_contents else []


def _live_below_host(state: State, host_rows: list[list[int]]) -> list[list[int]]:
    """Contents of the second tier; and into the rows of the host goes what copies between the two will read, or have
    brought."""
    rows: list[list[int]] = []
    for worker, second in enumerate(state.second_contents):
        row = [content if key else 0 for content, key in zip(second, state.second.keys, strict=True)]
        for job in state.jobs:
            pending = job.progress[worker] < COPIED
            if job.direction < CASCADE or (not pending and not _may_still_publish(state, job, worker)):
                continue
            for pair in job.pairs:
                block = pair.source if pending else pair.destination
                if (job.direction == CASCADE) == pending:
                    host_rows[worker][block] = state.host_contents[worker][block]
                else:
                    row[block] = second[block]
        rows.append(row)
    return rows


def _may_still_publish(state: State, job: Job, worker: int) -> bool:
    """What the worker has copied may become what can be hit. What was given to a dead one, and lost, never does."""
    return job.view == LIVE and not (job.progress[worker] == LOST and is_dead(state, worker))


def _before_computes(unrun: list[Step], device: tuple[int, ...], row: list[int]) -> None:
    """What unrun computes will read is alive, unless one of them writes it before; what they write is not."""
    written: set[int] = set()
    for step in unrun:
        for share in step.shares:
            for block in share.table[share.start :]:
                row[block] = 0
    for step in unrun:
        for share in step.shares:
            for block in held(share.table[: share.start]):
                if block not in written:
                    row[block] = device[block]
        for share in step.shares:
            written.update(share.table[share.start :])


def _is_written_first(unrun: Sequence[Step], job: Job, block: int) -> bool:
    """The store waits for a compute that writes the block: what is in it until then is never read."""
    return any(
        step.id <= job.after_step and any(block in share.table[share.start :] for share in step.shares)
        for step in unrun
    )


def canonical(contract: Contract, state: State) -> State:
    """The one state that stands for all that differ from this one in names, or in dead contents, alone."""
    return canonical_with(contract, state)[0]


def canonical_with(contract: Contract, state: State) -> tuple[State, Renaming]:
    """The canonical state, and the renaming that leads to it."""
    renaming, device_same, host_same, second_same = renaming_of(contract, state)
    device_rows, host_rows, second_rows = live_contents(state)
    device, host, second = state.device, state.host, state.second
    requests, jobs, steps = state.requests, state.jobs, state.steps
    base = 1 if state.faults_left.duplicates and state.next_job > len(jobs) else 0
    if not device_same:
        device = _pool_renamed(device, renaming.device)
        device_rows = [_moved(row, renaming.device) for row in device_rows]
    if not host_same:
        host = _pool_renamed(host, renaming.host)
        host_rows = [_moved(row, renaming.host) for row in host_rows]
    if not second_same:
        second = _pool_renamed(second, renaming.second)
        second_rows = [_moved(row, renaming.second) for row in second_rows]
    same = device_same and host_same and second_same
    aged = state.next_job != base + len(jobs) or (base == 1 and bool(jobs) and jobs[0].id == 0)
    if aged or not same:
        requests = tuple([_request_renamed(request, renaming) for request in requests])
    if jobs and (aged or steps or not same):
        jobs = tuple([_job_renamed(job, renaming) for job in jobs])
    if steps:
        steps = tuple([_step_renamed(step, renaming) for step in steps])
    state = State(
        device,
        host,
        requests,
        jobs,
        steps,
        base + len(jobs),
        tuple([tuple(row) for row in device_rows]),
        tuple([tuple(row) for row in host_rows]),
        state.resets_left,
        state.faults_left,
        second,
        tuple([tuple(row) for row in second_rows]),
        state.dead,
        state.shut,
    )
    workers = len(device_rows)
    if workers == 1 or contract.output_from == "first" or (workers == 2 and _are_in_order(state)):
        return state, renaming
    return _workers_ordered(state, renaming)


def _moved(row: list[int], names: list[int]) -> list[int]:
    moved = row[:]
    for old, new in enumerate(names):
        moved[new] = row[old]
    return moved


def _pool_renamed(pool: Pool, names: list[int]) -> Pool:
    refs, keys = list(pool.refs), list(pool.keys)
    for old, new in enumerate(names):
        refs[new] = pool.refs[old]
        keys[new] = pool.keys[old]
    return Pool(tuple(refs), tuple(keys), tuple([names[block] for block in pool.free]))


def _request_renamed(request: Request, renaming: Renaming) -> Request:
    phase, table, computed, stored, pins, jobs, outdated, returns, promoted = request
    if pins is not None:
        host = renaming.host
        pins = Pins(
            tuple([renaming.device[block] for block in pins.device]), tuple([host[block] for block in pins.host])
        )
    elif not table and not jobs:
        return request
    device, ids = renaming.device, renaming.jobs
    table = tuple([device[block] if block >= 0 else block for block in table])
    named = tuple([ids.get(job, -1) for job in jobs])
    return Request(phase, table, computed, stored, pins, named, outdated, returns, promoted)


def _job_renamed(job: Job, renaming: Renaming) -> Job:
    number, direction, request, pairs, view, progress, flushed, after_step, after_jobs, failed = job
    if direction == STORE:
        source, target = renaming.device, renaming.host
    elif direction == LOAD:
        source, target = renaming.host, renaming.device
    elif direction == CASCADE:
        source, target = renaming.host, renaming.second
    else:
        source, target = renaming.second, renaming.host
    ids = renaming.jobs
    return Job(
        ids[number],
        direction,
        request,
        tuple([Pair(source[old], target[new], key) for old, new, key in pairs]),
        view,
        progress,
        flushed,
        renaming.steps.get(after_step, NONE),
        tuple([ids[other] for other in after_jobs if other in ids]) if after_jobs else after_jobs,
        failed,
    )


def _step_renamed(step: Step, renaming: Renaming) -> Step:
    device, ids = renaming.device, renaming.jobs
    shares = [
        Share(number, tuple([device[block] if block >= 0 else block for block in table]), start, left, outdated)
        for number, table, start, left, outdated in step.shares
    ]
    after_jobs = tuple([ids[other] for other in step.after_jobs if other in ids])
    return Step(renaming.steps[step.id], tuple(shares), step.ran, step.handled, after_jobs)


def _are_in_order(state: State) -> bool:
    """Two workers: the first is not behind the second in what they have done, then in what they hold. The living come
    first."""
    if state.dead and state.dead[0] != state.dead[1]:
        return state.dead[1]
    for job in state.jobs:
        first, second = job.progress
        if first != second:
            return first < second
        if job.failed and (failed := _failed_on(job, 0)) != (others := _failed_on(job, 1)):
            return failed < others
    for step in state.steps:
        if step.ran[0] != step.ran[1]:
            return step.ran[1]
    if state.device_contents[0] != state.device_contents[1]:
        return state.device_contents[0] < state.device_contents[1]
    if state.host_contents[0] != state.host_contents[1]:
        return state.host_contents[0] < state.host_contents[1]
    return not state.second_contents or state.second_contents[0] <= state.second_contents[1]


def _workers_ordered(state: State, renaming: Renaming) -> tuple[State, Renaming]:
    workers = range(len(state.device_contents))

    def column(
        worker: int,
    ) -> tuple[tuple[bool, ...], list[tuple[int, list[int]]], list[bool], tuple[tuple[int, ...], ...]]:
        return (
            state.dead[worker : worker + 1],
            [(job.progress[worker], _failed_on(job, worker)) for job in state.jobs],
            [step.ran[worker] for step in state.steps],
            (state.device_contents[worker], state.host_contents[worker], *state.second_contents[worker : worker + 1]),
        )

    order = tuple(sorted(workers, key=column))
    if order == renaming.workers:
        return state, renaming
    return (
        state._replace(
            jobs=tuple([_job_permuted(job, order) for job in state.jobs]),
            steps=tuple([step._replace(ran=tuple([step.ran[w] for w in order])) for step in state.steps]),
            device_contents=_permuted(state.device_contents, order),
            host_contents=_permuted(state.host_contents, order),
            second_contents=_permuted(state.second_contents, order) if state.second_contents else (),
            dead=tuple([state.dead[worker] for worker in order]) if state.dead else (),
        ),
        renaming._replace(workers=order),
    )


def ranks_of(renaming: Renaming) -> list[int]:
    """The new name of each worker."""
    ranks = [0] * len(renaming.workers)
    for new, old in enumerate(renaming.workers):
        ranks[old] = new
    return ranks


def job_renamed(job: Job, renaming: Renaming) -> Job:
    """A job of which it does not matter how far the workers are with it, which may be none of the renaming's: then its
    name says how many of those are older."""
    ranks = ranks_of(renaming)
    older = sum([other < job.id for other in renaming.jobs])
    named = renaming._replace(jobs={job.id: -1 - older, **renaming.jobs})
    failed = tuple(sorted([(ranks[worker], position) for worker, position in job.failed]))
    return _job_renamed(job._replace(progress=(), failed=failed), named)


def _failed_on(job: Job, worker: int) -> list[int]:
    return [position for other, position in job.failed if other == worker]


def _job_permuted(job: Job, order: tuple[int, ...]) -> Job:
    failed = tuple(sorted([(order.index(worker), position) for worker, position in job.failed]))
    return job._replace(progress=tuple([job.progress[worker] for worker in order]), failed=failed)


def _permuted(contents: Contents, order: tuple[int, ...]) -> Contents:
    return tuple([contents[worker] for worker in order])
