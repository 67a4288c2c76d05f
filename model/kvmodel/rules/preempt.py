"""Preempt: a running or loading request loses its blocks and waits again. By the client, or under pressure."""

from kvmodel import actions, policy
from kvmodel.departure import loading_left, table_let_go
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.launched_step import is_in_launched_step
from kvmodel.request import LOADING, RUNNING, WAITING_AFRESH, Request
from kvmodel.setting import Setting
from kvmodel.state import State


@guard
def holds_blocks(request: Request) -> bool:
    return request.phase in (RUNNING, LOADING)


def offered(setting: Setting, state: State, number: int) -> bool:
    return setting.scope.preempts and holds_blocks(state.requests[number])


def check(setting: Setting, state: State, action: actions.Preempt) -> None:
    if not holds_blocks(state.requests[action.request]):
        raise Forbidden("preempt", f"request {action.request} neither runs nor loads")


def apply(setting: Setting, state: State, action: actions.Preempt) -> State:
    """Its outstanding stores go on, and under fencing it waits for them before it is looked up again (PR 46231)."""
    number = action.request
    request = state.requests[number]
    if request.phase == LOADING:
        return loading_left(setting.contract, state, number, WAITING_AFRESH)
    return table_let_go(state, number, WAITING_AFRESH._replace(jobs=request.jobs))


def check_under_pressure(setting: Setting, state: State, action: actions.PreemptUnderPressure) -> None:
    """Somebody is preempted for the blocks that it frees: preempting a request of a launched step frees none before the
    output is handled, and a scheduler that goes on to the next victim preempts all for nothing (vLLM PR 49675)."""
    if state.requests[action.request].phase != RUNNING:
        raise Forbidden("preempt", f"request {action.request} does not run")
    if is_in_launched_step(state.steps, action.request):
        raise Forbidden("preempt", f"request {action.request} is in a launched step: preempting it frees nothing yet")


def under_pressure(setting: Setting, state: State) -> int | None:
    """Whom the policy preempts now, or None."""
    return policy.pressure_victim(setting, state)


def apply_under_pressure(setting: Setting, state: State, action: actions.PreemptUnderPressure) -> State:
    return apply(setting, state, actions.Preempt(action.request))
