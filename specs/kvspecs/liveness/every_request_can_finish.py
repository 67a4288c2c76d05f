"""every-request-can-finish."""

from kvmodel.request import ABSENT, DONE
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.liveness.lost_reports import waits_for_lost
from kvspecs.property import LivenessProperty


def goal(setting: Setting, state: State) -> bool:
    return all(
        request.phase in (DONE, ABSENT) or waits_for_lost(setting, state, number)
        for number, request in enumerate(state.requests)
    )


PROPERTY = LivenessProperty(
    "every-request-can-finish",
    "From every reachable state every submitted request finishes, if clients and environment leave it alone.",
    goal,
)
