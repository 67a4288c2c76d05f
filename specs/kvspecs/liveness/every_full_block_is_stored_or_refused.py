"""every-full-block-is-stored-or-refused."""

from kvmodel.policy import is_being_stored
from kvmodel.prefix_cache import is_cached
from kvmodel.request import RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import LivenessProperty


def goal(setting: Setting, state: State) -> bool:
    """No running request has a computed block that was not offered, that the host lacks, and that it has room for."""
    if setting.contract.lazy or not state.host.free:
        return True
    return not any(
        request.phase == RUNNING
        and not request.outdated
        and any(
            not is_cached(state.host, key) and not is_being_stored(state, key)
            for key in setting.total_keys[number][request.stored : request.computed]
        )
        for number, request in enumerate(state.requests)
    )


PROPERTY = LivenessProperty(
    "every-full-block-is-stored-or-refused",
    "Every computed block of a running request is stored, found on the host already, or refused because the host is full.",
    goal,
    without=frozenset({"Finish", "PreemptUnderPressure"}),
)
