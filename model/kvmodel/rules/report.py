"""Report: a worker's completion reaches the scheduler. A job is complete when every worker has reported it, by name.

The faults of reporting live here too: a completion that is repeated, that never comes, or that was never earned.
"""

from kvmodel import actions
from kvmodel.block_pool import release
from kvmodel.failure import failure_faced
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.owners import released_by_job
from kvmodel.prefix_cache import publish
from kvmodel.request import DRAINING, after_draining
from kvmodel.setting import Setting
from kvmodel.state import State, job_with, pool_of, with_job, with_pool, with_request, without_job
from kvmodel.transfer_job import (
    COPIED,
    FORGOTTEN,
    LIVE,
    LOAD,
    LOST,
    NONE,
    REPORTED,
    TIERS_OF,
    Job,
    failed_positions,
    intact_pairs,
    is_reported_by_all,
    is_settled,
)


@guard
def is_live(job: Job) -> bool:
    """The scheduler still wants what this job carries: only then may it publish."""
    return job.view == LIVE


@guard
def is_forgotten(job: Job) -> bool:
    return job.view == FORGOTTEN


@guard
def is_complete(job: Job) -> bool:
    """Every worker has reported it. One worker twice is not two workers (TensorRT-LLM, SGLang: counting reports)."""
    return is_reported_by_all(job)


@guard
def is_settled_now(job: Job) -> bool:
    return is_settled(job)


def check(setting: Setting, state: State, action: actions.Report) -> None:
    if setting.contract.marks:
        raise Forbidden("report", f"worker {action.worker} reports a single job, and the contract has reports of marks")
    job = job_with(state, action.job)
    if job is None or job.progress[action.worker] != COPIED:
        raise Forbidden("report", f"worker {action.worker} reports job {action.job}, which it has not just copied")


def apply(setting: Setting, state: State, action: actions.Report) -> State:
    job = job_with(state, action.job)
    assert job is not None
    return credited(setting, state, job, action.worker)


def credited(setting: Setting, state: State, job: Job, worker: int) -> State:
    """This worker has reported the job. If it was the last to do so, the job is complete."""
    job = _with_progress(job, worker, REPORTED)
    if is_forgotten(job):
        return _kept_or_gone(state, job)
    if not is_complete(job):
        return state._replace(jobs=with_job(state.jobs, job))
    return completed(setting, state, job)


def completed(setting: Setting, state: State, job: Job) -> State:
    """The last report came. A live job publishes what it brought over (never what failed, on whichever worker); an
    abandoned one publishes nothing (PR 39726). Both release."""
    state = state._replace(jobs=without_job(state.jobs, job.id))
    if is_live(job):
        pool = pool_of(state, TIERS_OF[job.direction][1])
        for pair in intact_pairs(job):
            pool = publish(pool, pair.destination, pair.key)
        state = with_pool(state, TIERS_OF[job.direction][1], pool)
    if job.request != NONE:
        state = request_served(state, job, len(intact_pairs(job)))
    state = released_by_job(setting.contract, state, job)
    return failure_faced(setting, state, job, failed_positions(job)) if job.failed and is_live(job) else state


def request_served(state: State, job: Job, loaded: int) -> State:
    """The request no longer waits for the job; a load has computed `loaded` blocks for it, or lets it drain."""
    request = state.requests[job.request]
    if job.id not in request.jobs:
        return state
    request = request._replace(jobs=tuple([other for other in request.jobs if other != job.id]))
    if request.phase == DRAINING:
        return state._replace(
            requests=with_request(state, job.request, after_draining(request)),
            device=release(state.device, request.table),
        )
    if job.direction == LOAD:
        request = request._replace(computed=request.computed + loaded)
    return state._replace(requests=with_request(state, job.request, request))


def _with_progress(job: Job, worker: int, progress: int) -> Job:
    return job._replace(progress=(*job.progress[:worker], progress, *job.progress[worker + 1 :]))


def _kept_or_gone(state: State, job: Job) -> State:
    if is_settled_now(job):
        return state._replace(jobs=without_job(state.jobs, job.id))
    return state._replace(jobs=with_job(state.jobs, job))


def lose(setting: Setting, state: State, action: actions.LoseReport) -> State:
    """The report never comes. A live or abandoned job keeps what it owns for ever: a visible hang, no corruption."""
    job = job_with(state, action.job)
    assert job is not None
    job = _with_progress(job, action.worker, LOST)
    state = state._replace(faults_left=state.faults_left._replace(losses=state.faults_left.losses - 1))
    return _kept_or_gone(state, job) if is_forgotten(job) else state._replace(jobs=with_job(state.jobs, job))


def duplicate(setting: Setting, state: State, action: actions.DuplicateReport) -> State:
    """A repeated completion changes nothing, whatever became of the job."""
    return state._replace(faults_left=state.faults_left._replace(duplicates=state.faults_left.duplicates - 1))


def forge(setting: Setting, state: State, action: actions.ForgeReport) -> State:
    """A completion of a job that was never issued is refused and changes nothing."""
    return state._replace(faults_left=state.faults_left._replace(forgeries=state.faults_left.forgeries - 1))


def check_lose(setting: Setting, state: State, action: actions.LoseReport) -> None:
    if not state.faults_left.losses:
        raise Forbidden("faults", "no more reports may be lost in this scope")
    check(setting, state, actions.Report(*action))


def was_reported(state: State, worker: int, job_id: int) -> bool:
    """This worker reported the job: it is in the table as reported by it, or it has left the table."""
    job = job_with(state, job_id)
    return job.progress[worker] == REPORTED if job is not None else 0 <= job_id < state.next_job


def check_duplicate(setting: Setting, state: State, action: actions.DuplicateReport) -> None:
    if not state.faults_left.duplicates:
        raise Forbidden("faults", "no more reports may be repeated in this scope")
    if setting.contract.marks or not was_reported(state, action.worker, action.job):
        raise Forbidden("duplicate-report", f"worker {action.worker} never reported job {action.job}")


def check_forge(setting: Setting, state: State, action: actions.ForgeReport) -> None:
    if not state.faults_left.forgeries:
        raise Forbidden("faults", "no more reports may be forged in this scope")


def retired_job(state: State) -> int | None:
    """The youngest job id that was issued and has left the table."""
    present = {job.id for job in state.jobs}
    return next((number for number in range(state.next_job - 1, -1, -1) if number not in present), None)
