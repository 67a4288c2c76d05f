"""Abort: the client gives a request up, in whatever phase it is."""

from kvmodel import actions
from kvmodel.departure import loading_left, pins_let_go, table_let_go
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.request import DRAINING, ENDED, LOADING, RUNNING, WAITING, Request
from kvmodel.setting import Setting
from kvmodel.state import State, with_request


@guard
def may_end(request: Request) -> bool:
    """It has not ended, and is not about to."""
    return request.phase in (WAITING, LOADING, RUNNING) or (request.phase == DRAINING and request.returns)


def offered(setting: Setting, state: State, number: int) -> bool:
    return setting.scope.aborts and may_end(state.requests[number])


def check(setting: Setting, state: State, action: actions.Abort) -> None:
    if not may_end(state.requests[action.request]):
        raise Forbidden("abort", f"request {action.request} is not there to be aborted")


def apply(setting: Setting, state: State, action: actions.Abort) -> State:
    number = action.request
    request = state.requests[number]
    if request.phase == WAITING:
        return pins_let_go(state, number, ENDED)
    if request.phase == LOADING:
        return loading_left(setting.contract, state, number, ENDED)
    if request.phase == DRAINING:
        return state._replace(requests=with_request(state, number, request._replace(returns=False)))
    return table_let_go(state, number, ENDED)
