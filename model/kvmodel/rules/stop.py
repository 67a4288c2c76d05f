"""Stop: a request ends with an output before its last block, since a stop token was sampled. Only the output says so.

With asynchronous scheduling the next step computes for it already, on the assumption that it would go on. That step
keeps its blocks until its own output is handled, which changes nothing (vLLM PR 45357).
"""

from kvmodel import actions
from kvmodel.departure import table_let_go
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.request import ENDED, RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State


@guard
def may_stop(setting: Setting, state: State, number: int) -> bool:
    """An output with a token of its own was handled, that of the last block of its prompt or a later one, and it has
    more to decode."""
    request = state.requests[number]
    if request.phase != RUNNING:
        return False
    return len(setting.prompt_keys[number]) <= request.computed < len(setting.total_keys[number])


def offered(setting: Setting, state: State, number: int) -> bool:
    return setting.scope.stops and may_stop(setting, state, number)


def check(setting: Setting, state: State, action: actions.Stop) -> None:
    if not may_stop(setting, state, action.request):
        raise Forbidden("stop", f"request {action.request} stops before an output of it, or after its last one")


def apply(setting: Setting, state: State, action: actions.Stop) -> State:
    return table_let_go(state, action.request, ENDED)
