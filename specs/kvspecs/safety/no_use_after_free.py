"""no-use-after-free."""

from kvmodel.request import DRAINING, LOADING
from kvmodel.setting import Setting
from kvmodel.state import State, pool_of
from kvmodel.transfer_job import COPIED, FORGOTTEN, LOAD, QUEUED, TIERS_OF, Job, destinations
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    """Whoever is about to write a block owns it, and nobody can hit it meanwhile.

    Two writers own nothing, and are kept apart from later users by the fence alone (fence-before-reuse): a forgotten
    copy, and the compute of a step whose output was handled before the last worker ran it.
    """
    for job in state.jobs:
        if min(job.progress) >= COPIED or job.progress[0] == QUEUED:
            continue
        broken = _written_by_job(setting, state, job)
        if broken:
            return broken
    for step in state.steps:
        if step.handled:
            continue
        for share in step.shares:
            if not share.left and state.requests[share.request].table[: len(share.table)] != share.table:
                return f"launched step {step.id} computes in blocks that request {share.request} does not hold"
            for block in share.table[share.start :]:
                if state.device.keys[block]:
                    return f"device block {block} can be hit while launched step {step.id} writes it"
                if not state.device.refs[block]:
                    return f"device block {block} is free while launched step {step.id} writes it"
    return None


def _written_by_job(setting: Setting, state: State, job: Job) -> Broken:
    tier = TIERS_OF[job.direction][1]
    pool = pool_of(state, tier)
    for block in destinations(job):
        if pool.keys[block] and not _is_overwritten_later(state, job, block):
            return f"{tier} block {block} can be hit while job {job.id} still writes it"
        if job.view != FORGOTTEN and not pool.refs[block]:
            return f"{tier} block {block} is free while job {job.id} still writes it"
    if job.direction != LOAD or job.view == FORGOTTEN or setting.contract.pins:
        return None
    request = state.requests[job.request]
    if request.phase not in (LOADING, DRAINING) or job.id not in request.jobs:
        return f"job {job.id} loads for request {job.request}, which no longer waits for it"
    if not set(destinations(job)) <= set(request.table):
        return f"job {job.id} loads into blocks that request {job.request} does not hold"
    return None


def _is_overwritten_later(state: State, job: Job, block: int) -> bool:
    """A reset forgot the job, and each worker that has yet to copy it will compute the block after it (the fence)."""
    return job.view == FORGOTTEN and all(
        any(
            step.handled and not step.ran[worker] and any(block in share.table[share.start :] for share in step.shares)
            for step in state.steps
        )
        for worker, progress in enumerate(job.progress)
        if progress < COPIED
    )


PROPERTY = Property(
    "no-use-after-free",
    "No operation writes a block that its job or request does not own, and no such block can be hit meanwhile.",
    on_state,
)
