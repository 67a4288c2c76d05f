"""work-remaining-keeps-the-engine-stepping."""

from kvmodel.request import ABSENT, DONE
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.liveness.dead_workers import never_ends
from kvspecs.liveness.lost_reports import is_stuck, waits_for_lost
from kvspecs.property import Broken, Property


def stands_still(setting: Setting, state: State, offered: frozenset[str]) -> Broken:
    """While a request or a job is not done, something other than clients and faults can happen."""
    if offered:
        return None
    for number, request in enumerate(state.requests):
        if request.phase not in (ABSENT, DONE) and not waits_for_lost(setting, state, number):
            return f"request {number} is not done, and nothing more will happen"
    for job in state.jobs:
        if not is_stuck(setting, state, job):
            return f"job {job.id} is not done, and nothing more will happen"
    for step in state.steps:
        if not never_ends(setting, state, step):
            return f"the output of step {step.id} is not handled, and nothing more will happen"
    return None


PROPERTY = Property(
    "work-remaining-keeps-the-engine-stepping",
    "While a request, a job or a step is not done, the engine or a worker has something to do.",
)
