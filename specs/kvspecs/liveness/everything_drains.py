"""everything-drains."""

from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.liveness.dead_workers import never_ends
from kvspecs.liveness.every_request_can_finish import goal as every_request_is_done
from kvspecs.liveness.lost_reports import is_stuck
from kvspecs.property import LivenessProperty


def goal(setting: Setting, state: State) -> bool:
    """No job is left, no step, and no reference: except what stuck jobs, steps that never end and the requests waiting
    for them keep."""
    if any(not never_ends(setting, state, step) for step in state.steps) or not every_request_is_done(setting, state):
        return False
    if any(not is_stuck(setting, state, job) for job in state.jobs):
        return False
    if state.jobs or state.steps:
        return True
    return not (any(state.device.refs) or any(state.host.refs) or any(state.second.refs))


PROPERTY = LivenessProperty(
    "everything-drains",
    "From every reachable state all jobs are completed, and at last no block has a reference.",
    goal,
)
