"""every-full-block-is-stored-or-refused."""

from kvmodel.request import RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import LivenessProperty


def goal(setting: Setting, state: State) -> bool:
    """Every computed block of every running request was offered to the host, unless the host is full."""
    if setting.contract.lazy or not state.host.free:
        return True
    return all(
        request.phase != RUNNING or request.outdated or request.stored >= request.computed for request in state.requests
    )


PROPERTY = LivenessProperty(
    "every-full-block-is-stored-or-refused",
    "Every computed block of a running request is stored, found on the host already, or refused because the host is full.",
    goal,
    without=frozenset({"Finish", "PreemptUnderPressure"}),
)
