"""Die: a worker dies. What it has queued never runs, what it has not reported is never reported, and nobody is told.

What was given to it, or will be, is lost: such a job is never complete, since every worker must report it, and the
output of such a step never comes, since every worker must compute it. So nothing that these hold is published or
released, and whoever needs it waits: until the worker is declared dead (`declare_dead`), and without a deadline for
ever, a hang that everybody sees, and no corruption (vLLM PR 44541). The other workers go on with what they have.
Nothing waits for a copy of the dead, where nothing will be written any more.

Its memory keeps what it held, and what can be hit can still be hit: only that a step which reads it will not end.
"""

from kvmodel import actions
from kvmodel.forbidden import Forbidden
from kvmodel.rules.run import after_copies
from kvmodel.setting import Setting
from kvmodel.state import State, is_dead
from kvmodel.transfer_job import COPIED, FORGOTTEN, LAUNCHED, LOST, Job, is_copied_everywhere, is_settled


def offered(setting: Setting, state: State) -> list[actions.Die]:
    """Any worker that lives may die, at any time."""
    if not state.faults_left.deaths:
        return []
    return [actions.Die(worker) for worker in range(setting.scope.workers) if not is_dead(state, worker)]


def check(setting: Setting, state: State, action: actions.Die) -> None:
    if not state.faults_left.deaths:
        raise Forbidden("faults", "no more workers may die in this scope")
    if is_dead(state, action.worker):
        raise Forbidden("die", f"worker {action.worker} is dead already")


def apply(setting: Setting, state: State, action: actions.Die) -> State:
    dead = state.dead or (False,) * setting.scope.workers
    state = state._replace(
        dead=(*dead[: action.worker], True, *dead[action.worker + 1 :]),
        faults_left=state.faults_left._replace(deaths=state.faults_left.deaths - 1),
    )
    for job in state.jobs:
        if job.progress[action.worker] in (LAUNCHED, COPIED):
            state = _lost(state, job, action.worker)
    return state


def _lost(state: State, job: Job, worker: int) -> State:
    """The job with its report of this worker lost. One that the scheduler has dropped leaves when no other comes."""
    lost = job._replace(progress=(*job.progress[:worker], LOST, *job.progress[worker + 1 :]))
    if is_copied_everywhere(lost) and not is_copied_everywhere(job):
        state, lost = after_copies(state, lost)
    gone = lost.view == FORGOTTEN and is_settled(lost)
    jobs = [other if other.id != job.id else lost for other in state.jobs if not (gone and other.id == job.id)]
    return state._replace(jobs=tuple(jobs))
