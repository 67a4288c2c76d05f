"""reset-converges."""

from kvmodel.actions import Reset
from kvmodel.rules.reset import would_answer_true
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.tiers import Tiers
from kvmodel.transfer_job import FORGOTTEN, is_queued
from kvspecs.liveness.lost_reports import is_stuck
from kvspecs.property import LivenessProperty

WITHOUT_SURVIVORS: dict[Tiers, Reset] = {
    "all": Reset("invalidate", "preempt"),
    "device": Reset("evict", "preempt", "device"),
    "host": Reset("evict", "keep", "host"),
}


def goal(setting: Setting, state: State) -> bool:
    """Every reset without survivors would answer True now; or, under pinning, a stuck job forbids it for ever."""
    if any(is_stuck(setting, state, job) and not is_queued(job) for job in state.jobs):
        return True
    whole = setting.contract.pins and "all" in setting.scope.tiers
    if whole and any(job.view != FORGOTTEN and not is_queued(job) for job in state.jobs):
        return False  # what is on its way can only be abandoned: so it is in most states, and this is quicker to see
    return all(would_answer_true(setting, state, WITHOUT_SURVIVORS[tiers]) for tiers in setting.scope.tiers)


PROPERTY = LivenessProperty(
    "reset-converges",
    "From every reachable state, also an idle one, a reset that is asked for again at last answers True.",
    goal,
)
