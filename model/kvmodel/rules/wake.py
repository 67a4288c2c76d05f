"""Wake: the second channel of a load. A request whose load is complete becomes runnable.

Keyed by job, so that the wake of an old load never wakes a request for a new one.
"""

from kvmodel import actions
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.request import LOADING, RUNNING, Request
from kvmodel.setting import Setting
from kvmodel.state import State, with_request


@guard
def is_loaded(request: Request) -> bool:
    """LOADING, and the load that it waited for is complete."""
    return request.phase == LOADING and not request.jobs


def offered(setting: Setting, state: State, number: int) -> bool:
    return is_loaded(state.requests[number])


def check(setting: Setting, state: State, action: actions.Wake) -> None:
    if not offered(setting, state, action.request):
        raise Forbidden("wake", f"request {action.request} wakes before its load is complete")


def apply(setting: Setting, state: State, action: actions.Wake) -> State:
    woken = state.requests[action.request]._replace(phase=RUNNING)
    return state._replace(requests=with_request(state, action.request, woken))
