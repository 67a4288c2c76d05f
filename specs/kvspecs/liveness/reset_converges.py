"""reset-converges."""

from kvmodel.actions import Reset
from kvmodel.rules.reset import would_answer_true
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.liveness.lost_reports import is_stuck
from kvspecs.property import LivenessProperty


def goal(setting: Setting, state: State) -> bool:
    """A reset without survivors would answer True now; or, under pinning, a stuck job forbids it for ever."""
    if any(is_stuck(job) for job in state.jobs):
        return True
    return would_answer_true(setting, state, Reset("invalidate", "preempt"))


PROPERTY = LivenessProperty(
    "reset-converges",
    "From every reachable state, also an idle one, a reset that is asked for again at last answers True.",
    goal,
)
