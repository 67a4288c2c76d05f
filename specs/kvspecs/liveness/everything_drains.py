"""everything-drains."""

from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.liveness.every_request_can_finish import goal as every_request_is_done
from kvspecs.liveness.lost_reports import is_stuck
from kvspecs.property import LivenessProperty


def goal(setting: Setting, state: State) -> bool:
    """No job is left, no step, and no reference: except what a stuck job and the requests waiting for it keep."""
    if state.steps or not every_request_is_done(setting, state):
        return False
    if any(not is_stuck(setting, job) for job in state.jobs):
        return False
    return bool(state.jobs) or not (any(state.device.refs) or any(state.host.refs) or any(state.second.refs))


PROPERTY = LivenessProperty(
    "everything-drains",
    "From every reachable state all jobs are completed, and at last no block has a reference.",
    goal,
)
