"""kvoffload's own state in the terms of the properties: a state of the machine, made of the engine, the ledger and the
workers' marks alone. What the machine believes of the target is not in it, so that a property that is asked of it is
asked of the implementation.

The machine has three things that kvoffload has not, and that no property of a state needs: how many resets and faults
are left; on which worker a reported copy has failed (the engine notes where in the job); and the keys and the request
of a transfer that the engine has dropped while it still runs, which are those of the ledger's operation: none.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from kvmodel.block_pool import Pool
from kvmodel.launched_step import Share, Step
from kvmodel.setting import Setting
from kvmodel.state import Faults, State
from kvmodel.streams import STREAMS
from kvmodel.transfer_job import (
    ABANDONED,
    CASCADE,
    COPIED,
    FORGOTTEN,
    LAUNCHED,
    LIVE,
    LOAD,
    LOST,
    NONE,
    PROMOTION,
    QUEUED,
    REPORTED,
    STORE,
    Job,
    Pair,
)
from kvoffload.completions.marks import WorkerMarks
from kvoffload.devices.ledger import Ledger, LedgerWorker
from kvoffload.engine import Engine
from kvoffload.operations import Compute, Copy
from kvoffload.operations import Share as Computed
from kvoffload.transfer_job import Direction, JobState, TransferJob
from kvproof.targets.view import View

_VIEWS = {JobState.LIVE: LIVE, JobState.ABANDONED: ABANDONED, JobState.FORGOTTEN: FORGOTTEN}
DIRECTIONS = {
    Direction.STORE: STORE,
    Direction.LOAD: LOAD,
    Direction.CASCADE: CASCADE,
    Direction.PROMOTION: PROMOTION,
}
_NO_FAULTS = Faults(0, 0, 0, 0)


def own_state(setting: Setting, view: View, engine: Engine, ledger: Ledger, marks: Sequence[WorkerMarks]) -> State:
    """The whole control state, with the contents of all blocks. view: what the adapter has just shown of it."""
    assert view.device_refs is not None
    assert view.device_keys is not None
    assert view.device_free is not None
    assert view.host_refs is not None
    assert view.host_keys is not None
    assert view.host_free is not None
    assert view.requests is not None
    assert view.contents is not None
    assert view.second_refs is not None
    assert view.second_keys is not None
    assert view.second_free is not None
    return State(
        Pool(view.device_refs, view.device_keys, view.device_free),
        Pool(view.host_refs, view.host_keys, view.host_free),
        view.requests,
        _jobs(engine, ledger, marks),
        _steps(setting, view, engine, ledger),
        engine.connector.next_job,
        view.contents[0],
        view.contents[1],
        0,
        _NO_FAULTS,
        Pool(view.second_refs, view.second_keys, view.second_free),
        view.contents[2] if len(view.contents) > 2 else (),
        dead=tuple([shard.dead for shard in ledger.shards]) if any(shard.dead for shard in ledger.shards) else (),
        shut=engine.scheduler.shut,
    )


def _jobs(engine: Engine, ledger: Ledger, marks: Sequence[WorkerMarks]) -> tuple[Job, ...]:
    known = engine.connector.jobs
    if not known and not any(shard.unrun for shard in ledger.shards):
        return ()
    unrun = [
        {}
        if shard.dead
        else {copy.job: copy for copy in (*shard.stores, *shard.loads, *shard.cascades, *shard.promotions)}
        for shard in ledger.shards
    ]
    found = [_known(job, ledger.shards, unrun, marks) for job in known.values()]
    dropped = {job: copy for copies in unrun for job, copy in copies.items() if job not in known}
    found += [_dropped(copy, unrun) for copy in dropped.values()]
    return tuple(sorted(found, key=lambda job: job.id))


def _known(
    job: TransferJob,
    shards: Sequence[LedgerWorker],
    unrun: Sequence[Mapping[int, Copy]],
    marks: Sequence[WorkerMarks],
) -> Job:
    """A transfer in the scheduler's table; how far each worker is with it, the ledger says."""
    progress: list[int] = []
    waiting: Copy | None = None
    after_step = NONE
    for worker, shard in enumerate(shards):
        copy = unrun[worker].get(job.id)
        if shard.dead and job.launched and worker in job.awaiting:
            progress.append(LOST)
        elif copy is not None:
            progress.append(LAUNCHED)
            waiting = copy
            if copy.step >= shard.computed:
                after_step = copy.step
        elif not job.launched:
            progress.append(QUEUED)
        elif worker not in job.awaiting:
            progress.append(REPORTED)
        else:
            progress.append(COPIED if marks or job.id in shard.finished else LOST)
    return Job(
        job.id,
        DIRECTIONS[job.direction],
        NONE if job.request is None else job.request,
        tuple([Pair(*pair) for pair in job.pairs]),
        _VIEWS[job.state],
        tuple(progress),
        job.flush_ordered and min(progress) < COPIED,
        after_step,
        () if waiting is None else waiting.jobs,
        tuple(_failures(job, shards, marks)),
    )


def _failures(
    job: TransferJob, shards: Sequence[LedgerWorker], marks: Sequence[WorkerMarks]
) -> Iterator[tuple[int, int]]:
    noted = set() if job.state is JobState.FORGOTTEN else job.failed  # of one that expired: all of it, whatever ran
    for position in sorted(noted):
        yield 0, position
    for worker, shard in enumerate(shards):
        told = marks[worker].of(job.direction).failed.get(job.id, ()) if marks else ()
        for position in (*shard.failed.get(job.id, ()), *told):
            if position not in noted:
                yield worker, position


def _dropped(copy: Copy, unrun: Sequence[Mapping[int, Copy]]) -> Job:
    """A copy that still runs although the scheduler knows nothing of it any more."""
    progress = tuple([LAUNCHED if copy.job in copies else REPORTED for copies in unrun])
    pairs = tuple([Pair(source, destination, 0) for source, destination in copy.pairs])
    direction = STREAMS.index(copy.stream)
    return Job(copy.job, direction, NONE, pairs, FORGOTTEN, progress, False, copy.step, copy.jobs)


def _steps(setting: Setting, view: View, engine: Engine, ledger: Ledger) -> tuple[Step, ...]:
    pipeline = engine.scheduler.pipeline
    if not pipeline and not any(shard.computes for shard in ledger.shards):
        return ()
    generation = engine.scheduler.generation
    unrun = [
        {} if shard.dead and engine.scheduler.shut else {compute.step: compute for compute in shard.computes}
        for shard in ledger.shards
    ]
    awaited = {launched.step: launched for launched in pipeline}
    found: list[Step] = []
    for number in sorted(awaited.keys() | {step for computes in unrun for step in computes}):
        compute = next((computes[number] for computes in unrun if number in computes), None)
        launched = awaited.get(number)
        if launched is None:
            assert compute is not None
            shares = [_handled(setting, share, generation) for share in compute.shares]
        else:
            shares = []
            for position, (request, share) in enumerate(launched.shares.items()):
                if compute is None and share.left:
                    outdated = _holds_old(view, share.blocks[-1])
                else:
                    outdated = _is_outdated(engine, request, compute, position, generation)
                shares.append(Share(request, share.blocks, share.first, share.left, outdated))
        ran = tuple([number not in computes for computes in unrun])
        found.append(Step(number, tuple(shares), ran, launched is None, () if compute is None else compute.jobs))
    return tuple(found)


def _is_outdated(engine: Engine, request: int, compute: Compute | None, position: int, generation: int) -> bool:
    """Of the weights before the last change. When it has run everywhere, its request tells."""
    if compute is not None and position < len(compute.shares):
        share = compute.shares[position]
        return any(content.generation != generation for _, content in (*share.reads, *share.writes))
    known = engine.requests.get(request)
    return known is not None and bool(known.table) and known.generation != generation


def _holds_old(view: View, block: int) -> bool:
    """What a step has written everywhere for a request that has left it: the block tells of which weights it is."""
    assert view.contents is not None
    return view.contents[0][0][block] < 0


def _handled(setting: Setting, share: Computed, generation: int) -> Share:
    """A share of a step whose output was handled before the last worker ran it: the ledger knows what it computes, and
    not for whom. A key stands for everything before it: any request that has it will do."""
    contents = (*share.reads, *share.writes)
    last = contents[-1][1]
    request = _requests_by_key(setting.total_keys)[last.key]
    table = tuple([block for block, _ in contents])
    return Share(request, table, len(share.reads), False, last.generation != generation)


@lru_cache(maxsize=64)
def _requests_by_key(total_keys: tuple[tuple[int, ...], ...]) -> dict[int, int]:
    return {key: number for number, keys in reversed(list(enumerate(total_keys))) for key in keys}
