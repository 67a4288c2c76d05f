"""Departure: how a request lets go of its blocks, and of its load."""

from kvmodel.block_pool import release, touch
from kvmodel.contract import Contract
from kvmodel.guards import guard
from kvmodel.launched_step import Step, is_in_launched_step, shares_of
from kvmodel.owners import released_by_job
from kvmodel.request import DRAINING, WAITING_AFRESH, Request
from kvmodel.state import State, job_with, with_job, with_request, without_job
from kvmodel.transfer_job import ABANDONED, FORGOTTEN, Job, is_copied_everywhere, is_queued, is_settled


def table_let_go(state: State, number: int, successor: Request) -> State:
    """The request becomes `successor` and owns its table no more.

    Blocks in which launched steps still compute belong to those steps until their output is handled (vLLM PR 45357):
    the request's references pass to the youngest, and each older one gets its own. The rest is released.
    """
    table = state.requests[number].table
    requests = with_request(state, number, successor)
    if not is_in_launched_step(state.steps, number):
        return state._replace(requests=requests, device=release(state.device, table))
    *older, youngest = shares_of(state.steps, number)
    device = state.device
    for share in older:
        device = touch(device, share.table)
    steps = tuple([_without(step, number) for step in state.steps])
    return state._replace(requests=requests, device=release(device, table[len(youngest.table) :]), steps=steps)


def _without(step: Step, number: int) -> Step:
    if step.handled:
        return step
    shares = [share._replace(left=True) if share.request == number else share for share in step.shares]
    return step._replace(shares=tuple(shares))


def pins_let_go(state: State, number: int, successor: Request) -> State:
    """The request becomes `successor`, and what its lookup pinned is released (vLLM PR 42289: on every way out)."""
    pins = state.requests[number].pins
    requests = with_request(state, number, successor)
    if pins is None:
        return state._replace(requests=requests)
    return state._replace(
        requests=requests, device=release(state.device, pins.device), host=release(state.host, pins.host)
    )


def load_of(state: State, number: int) -> Job | None:
    """The load that a LOADING request waits for, or None when it is complete."""
    jobs = state.requests[number].jobs
    return job_with(state, jobs[0]) if jobs else None


def cancelled(contract: Contract, state: State, job: Job) -> State:
    """A job that was never launched ceases to be; what it owned is released."""
    return released_by_job(contract, state, job)._replace(jobs=without_job(state.jobs, job.id))


def abandoned(state: State, job: Job) -> State:
    """The copies go on and the job keeps its references until they are reported; it will publish nothing (PR 39726)."""
    return state._replace(jobs=with_job(state.jobs, job._replace(view=ABANDONED)))


def forgotten(contract: Contract, state: State, job: Job) -> State:
    """The job owns nothing from now on. Its copies may still run: the next launch waits for them (PR 48102)."""
    state = released_by_job(contract, state, job)
    changed = job._replace(view=FORGOTTEN, flushed=not is_copied_everywhere(job))
    if is_settled(changed):
        return state._replace(jobs=without_job(state.jobs, job.id))
    return state._replace(jobs=with_job(state.jobs, changed))


@guard
def is_on_its_way(job: Job) -> bool:
    """Launched: its copies may run at any time. Otherwise the job can be cancelled."""
    return not is_queued(job)


def loading_left(contract: Contract, state: State, number: int, successor: Request) -> State:
    """A LOADING request is to become `successor`, although its load may still write its blocks (SGLang 23392).

    pinning: the abandoned load owns the blocks until it is reported. fencing: the blocks are the request's, which
    keeps them, and drains.
    """
    job = load_of(state, number)
    if job is None:
        return table_let_go(state, number, successor)
    if not is_on_its_way(job):
        return table_let_go(cancelled(contract, state, job), number, successor)
    if contract.pins:
        return table_let_go(abandoned(state, job), number, successor)
    request = state.requests[number]._replace(phase=DRAINING, returns=successor is WAITING_AFRESH)
    return abandoned(state, job)._replace(requests=with_request(state, number, request))


def load_dropped(contract: Contract, state: State, number: int) -> State:
    """A reset takes a LOADING request's load away at once: pinning abandons it, fencing forgets and fences it."""
    job = load_of(state, number)
    if job is None:
        return state
    if is_queued(job):
        return cancelled(contract, state, job)
    return abandoned(state, job) if contract.pins else forgotten(contract, state, job)
