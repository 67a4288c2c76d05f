"""Finish: a request that is wholly computed ends, and its blocks are released. Its stores may still run."""

from kvmodel import actions
from kvmodel.departure import table_let_go
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.launched_step import is_in_launched_step
from kvmodel.request import ENDED, RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State


@guard
def is_wholly_computed(setting: Setting, state: State, number: int) -> bool:
    request = state.requests[number]
    return request.phase == RUNNING and request.computed == len(setting.total_keys[number])


def offered(setting: Setting, state: State, number: int) -> bool:
    return is_wholly_computed(setting, state, number) and not is_in_launched_step(state.steps, number)


def check(setting: Setting, state: State, action: actions.Finish) -> None:
    if not offered(setting, state, action.request):
        raise Forbidden("finish", f"request {action.request} finishes before it is wholly computed")


def apply(setting: Setting, state: State, action: actions.Finish) -> State:
    return table_let_go(state, action.request, ENDED)
