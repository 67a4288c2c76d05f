"""Abort: the client gives a request up, in whatever phase it is.

A request that is loading cannot give its blocks away while the load still writes them (vLLM issue 45357's kin, SGLang
23392). pinning: the abandoned load owns them until it is reported. fencing: the request itself drains until then.
"""

from kvmodel import actions
from kvmodel.departure import abandoned, cancelled, load_of, pins_let_go, table_let_go
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.request import DRAINING, ENDED, LOADING, RUNNING, WAITING, Request
from kvmodel.setting import Setting
from kvmodel.state import State, with_request
from kvmodel.transfer_job import Job, is_queued


@guard
def may_end(request: Request) -> bool:
    return request.phase in (WAITING, LOADING, RUNNING)


@guard
def is_on_its_way(job: Job) -> bool:
    """Launched: its copies may run at any time. Otherwise the job can be cancelled."""
    return not is_queued(job)


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
    if request.phase == LOADING and (job := load_of(state, number)) is not None:
        if not is_on_its_way(job):
            state = cancelled(setting.contract, state, job)
        elif setting.contract.pins:
            state = abandoned(state, job)
        else:
            draining = request._replace(phase=DRAINING)
            return abandoned(state, job)._replace(requests=with_request(state, number, draining))
    return table_let_go(state, number, ENDED)
