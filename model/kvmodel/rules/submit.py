"""Submit: a request begins to wait."""

from kvmodel import actions
from kvmodel.forbidden import Forbidden
from kvmodel.request import ABSENT, WAITING_AFRESH
from kvmodel.setting import Setting
from kvmodel.state import State, with_request


def offered(setting: Setting, state: State, number: int) -> bool:
    return state.requests[number].phase == ABSENT and not state.shut


def check(setting: Setting, state: State, action: actions.Submit) -> None:
    if state.shut:
        raise Forbidden("submit", "the engine has shut down: a worker was declared dead")
    if not offered(setting, state, action.request):
        raise Forbidden("submit", f"request {action.request} was submitted before")


def apply(setting: Setting, state: State, action: actions.Submit) -> State:
    return state._replace(requests=with_request(state, action.request, WAITING_AFRESH))
