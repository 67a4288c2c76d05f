"""FreeTwice: a client frees what is free, or ends what has ended. It is refused, and the refusal changes nothing."""

from kvmodel import actions
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.request import DONE
from kvmodel.setting import Setting
from kvmodel.state import State, pool_of


@guard
def is_freed(state: State, what: actions.Freed) -> bool:
    """There is something of this sort that has been freed already."""
    if what == "request":
        return any(request.phase == DONE for request in state.requests)
    return bool(pool_of(state, what).free)


def offered(state: State) -> list[actions.FreeTwice]:
    if not state.faults_left.double_frees:
        return []
    kinds: tuple[actions.Freed, ...] = ("device", "host", "second", "request")
    return [actions.FreeTwice(what) for what in kinds if is_freed(state, what)]


def check(setting: Setting, state: State, action: actions.FreeTwice) -> None:
    if not state.faults_left.double_frees:
        raise Forbidden("faults", "nothing more may be freed twice in this scope")
    if not is_freed(state, action.what):
        raise Forbidden("free-twice", f"there is no {action.what} that was freed before")


def apply(setting: Setting, state: State, action: actions.FreeTwice) -> State:
    left = state.faults_left.double_frees - 1
    return state._replace(faults_left=state.faults_left._replace(double_frees=left))
