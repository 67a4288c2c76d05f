"""Expire: a job is past its deadline. It is cleaned up as a failure, and its late reports are absorbed (vLLM PR 46019).

A copy that is late may still run, and nobody can stop it. So the job is forgotten as a reset under fencing forgets
jobs: it owns nothing and publishes nothing, it stays in the table until the last report, and whatever is launched from
now on waits, on each worker, until the copy is over there. That is safe whether a worker is slow or its report is lost,
under pinning too: the fence takes the place of the pins. (Released pins alone would be a use after free: PR 46289.)
"""

from kvmodel import actions
from kvmodel.departure import forgotten
from kvmodel.failure import failure_faced
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.rules.report import is_live, request_served
from kvmodel.setting import Setting
from kvmodel.state import State, is_dead, job_with
from kvmodel.transfer_job import FORGOTTEN, LOST, NONE, Job, is_queued


@guard
def is_outstanding(job: Job) -> bool:
    """Workers were told of it, and the scheduler has neither completed nor dropped it."""
    return job.view != FORGOTTEN and not is_queued(job)


@guard
def is_lost(state: State, job: Job) -> bool:
    """Some report of it will never come, from a worker that lives: its deadline passes for certain. What the dead were
    given has the deadline of the dead (`declare_dead`): else it would be made and given up again without end."""
    if not state.dead:
        return LOST in job.progress
    return any(progress == LOST and not is_dead(state, worker) for worker, progress in enumerate(job.progress))


def offered(setting: Setting, state: State) -> list[actions.Expire]:
    """Every job that will never be complete; others too while the scope lets deadlines pass early."""
    if not setting.contract.expires:
        return []
    return [
        actions.Expire(job.id)
        for job in state.jobs
        if is_outstanding(job) and (is_lost(state, job) or state.faults_left.expiries)
    ]


def check(setting: Setting, state: State, action: actions.Expire) -> None:
    if not setting.contract.expires:
        raise Forbidden("expire", "jobs have no deadline in this contract: what does not come is waited for")
    job = job_with(state, action.job)
    if job is None or not is_outstanding(job):
        raise Forbidden("expire", f"job {action.job} is not outstanding")
    if not is_lost(state, job) and not state.faults_left.expiries:
        raise Forbidden("faults", "no more jobs may expire early in this scope")


def apply(setting: Setting, state: State, action: actions.Expire) -> State:
    job = job_with(state, action.job)
    assert job is not None
    if not is_lost(state, job):
        left = state.faults_left
        state = state._replace(faults_left=left._replace(expiries=left.expiries - 1))
    state = forgotten(setting.contract, state, job)
    if job.request != NONE:
        state = request_served(state, job, 0)
    return failure_faced(setting, state, job, range(len(job.pairs))) if is_live(job) else state
