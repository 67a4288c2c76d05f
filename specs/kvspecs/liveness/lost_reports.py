"""What waits for a report that will never come: liveness goals exempt exactly this, and nothing else."""

from kvmodel.owners import holding_of_job
from kvmodel.policy import hits
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import FORGOTTEN, LOST, Job


def is_stuck(job: Job) -> bool:
    """The job can never be completed, and the scheduler has not dropped it."""
    return LOST in job.progress and job.view != FORGOTTEN


def waits_for_lost(setting: Setting, state: State, number: int) -> bool:
    """The request waits for a stuck job, or for more device blocks than stuck jobs leave it.

    Blocks that it shares with a stuck job, in its table or as hits, it need not wait for.
    """
    stuck = [job for job in state.jobs if is_stuck(job)]
    if not stuck:
        return False
    request = state.requests[number]
    if any(job.id in request.jobs for job in stuck):
        return True
    held: set[int] = set()
    for job in stuck:
        held.update(holding_of_job(setting.contract, job).device)
        if job.request >= 0 and job.id in state.requests[job.request].jobs:
            held.update(state.requests[job.request].table)
    held.difference_update(request.table or hits(setting, state, number).device)
    return len(state.device.refs) - len(held) < len(setting.total_keys[number])
