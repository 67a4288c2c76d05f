"""Run: the oldest operation of one worker's stream runs. It moves contents and never asks what the scheduler thinks."""

from kvmodel import actions
from kvmodel.contents import TORN, before_reset, written
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.launched_step import Step
from kvmodel.setting import Setting
from kvmodel.state import State, contents_of, is_dead, with_contents
from kvmodel.streams import COMPUTE, STREAMS, may_compute, may_copy, oldest_compute, oldest_copy
from kvmodel.transfer_job import COPIED, NONE, TIERS_OF, Job, is_copied_everywhere


def check(setting: Setting, state: State, action: actions.Run) -> None:
    worker, stream = action
    if is_dead(state, worker):
        raise Forbidden("run", f"worker {worker} is dead: nothing runs there")
    if stream == COMPUTE:
        step = oldest_compute(state, worker)
        ready = step is not None and may_compute(state, worker, step)
    else:
        job = oldest_copy(state, worker, stream)
        ready = job is not None and may_copy(state, worker, job)
    if not ready:
        raise Forbidden("run", f"worker {worker} has nothing on its {STREAMS[stream]} stream that may run")


def apply(setting: Setting, state: State, action: actions.Run) -> State:
    worker, stream = action
    if stream == COMPUTE:
        step = oldest_compute(state, worker)
        assert step is not None
        return _compute(setting, state, worker, step)
    job = oldest_copy(state, worker, stream)
    assert job is not None
    return copied(state, worker, job, ())


@guard
def has_run_everywhere(step: Step) -> bool:
    return all(step.ran)


def _compute(setting: Setting, state: State, worker: int, step: Step) -> State:
    writes: list[tuple[int, int]] = []
    for share in step.shares:
        keys = setting.total_keys[share.request]
        for position in range(share.start, len(share.table)):
            key = keys[position]
            writes.append((share.table[position], before_reset(key) if share.outdated else key))
    ran = step._replace(ran=(*step.ran[:worker], True, *step.ran[worker + 1 :]))
    state = state._replace(
        device_contents=written(state.device_contents, worker, writes),
        steps=tuple([ran if other.id == step.id else other for other in state.steps]),
    )
    return retired(state, ran) if has_run_everywhere(ran) and ran.handled else state


def retired(state: State, step: Step) -> State:
    """The step left every stream and its output is handled: nothing waits for it any more."""
    jobs = state.jobs
    if any(job.after_step == step.id for job in jobs):
        jobs = tuple([job._replace(after_step=NONE) if job.after_step == step.id else job for job in jobs])
    return state._replace(steps=tuple([other for other in state.steps if other.id != step.id]), jobs=jobs)


def copied(state: State, worker: int, job: Job, failing: tuple[int, ...]) -> State:
    """The job's copies have run on a worker; those of the pairs at the `failing` positions have failed."""
    read, wrote = TIERS_OF[job.direction]
    source, target = contents_of(state, read), contents_of(state, wrote)
    writes = [(pair.destination, source[worker][pair.source]) for pair in job.pairs]
    if failing:
        writes = [(block, TORN if at in failing else held) for at, (block, held) in enumerate(writes)]
        job = job._replace(failed=tuple(sorted({*job.failed, *[(worker, position) for position in failing]})))
    ran = job._replace(progress=(*job.progress[:worker], COPIED, *job.progress[worker + 1 :]))
    if is_copied_everywhere(ran):
        state, ran = after_copies(state, ran)
    jobs = tuple([ran if other.id == job.id else other for other in state.jobs])
    return with_contents(state._replace(jobs=jobs), wrote, written(target, worker, writes))


def after_copies(state: State, job: Job) -> tuple[State, Job]:
    """The last copy of a job is over: it waits for nothing, and nothing waits for it any more."""
    if job.flushed:
        state = state._replace(
            jobs=tuple([_no_longer_after(other, job.id) for other in state.jobs]),
            steps=tuple([step._replace(after_jobs=_without(step.after_jobs, job.id)) for step in state.steps]),
        )
    return state, job._replace(flushed=False, after_step=NONE, after_jobs=())


def _without(ids: tuple[int, ...], job_id: int) -> tuple[int, ...]:
    return tuple([other for other in ids if other != job_id])


def _no_longer_after(job: Job, job_id: int) -> Job:
    return job._replace(after_jobs=_without(job.after_jobs, job_id)) if job_id in job.after_jobs else job
