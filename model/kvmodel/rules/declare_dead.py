"""DeclareDead: a dead worker is past its deadline. All that needs it ends as a failure, and everything does.

Every block has its part on every worker, so that without one no block of any tier is whole, and no request can be
served: the engine shuts down. Every request ends, launched steps are given up, jobs that no worker knows of are
cancelled and all others forgotten, nothing can be hit any more, and nothing more is submitted. It holds nothing then.

What living workers have in their streams still runs, and nobody can stop it. It harms nobody, since nothing is launched
any more; their late reports are absorbed, each once, as those of any forgotten job. (Jobs may also expire one by one
before that; steps cannot.) Only the dead are declared dead: who is slow is waited for.
"""

from kvmodel import actions
from kvmodel.block_pool import release
from kvmodel.departure import cancelled, forgotten
from kvmodel.forbidden import Forbidden
from kvmodel.launched_step import Step
from kvmodel.prefix_cache import cleared
from kvmodel.request import ABSENT, ENDED
from kvmodel.rules.run import has_run_everywhere, retired
from kvmodel.setting import Setting
from kvmodel.state import State, is_dead, with_request
from kvmodel.transfer_job import FORGOTTEN, is_queued


def offered(setting: Setting, state: State) -> list[actions.DeclareDead]:
    """Each dead worker, until the engine has shut down."""
    if state.shut:
        return []
    return [actions.DeclareDead(worker) for worker, died in enumerate(state.dead) if died]


def check(setting: Setting, state: State, action: actions.DeclareDead) -> None:
    if not setting.contract.expires:
        raise Forbidden("declare-dead", "workers have no deadline in this contract: who is dead is waited for")
    if not is_dead(state, action.worker):
        raise Forbidden("declare-dead", f"worker {action.worker} is not dead")
    if state.shut:
        raise Forbidden("declare-dead", "the engine has shut down already")


def apply(setting: Setting, state: State, action: actions.DeclareDead) -> State:
    for number in range(len(state.requests)):
        state = _ended(state, number)
    for job in state.jobs:
        if is_queued(job):
            state = cancelled(setting.contract, state, job)
        elif job.view != FORGOTTEN:
            state = forgotten(setting.contract, state, job)
    for step in state.steps:
        state = _given_up(state, step)
    return state._replace(
        device=cleared(state.device), host=cleared(state.host), second=cleared(state.second), shut=True
    )


def _ended(state: State, number: int) -> State:
    request = state.requests[number]
    if request.phase == ABSENT:
        return state
    device = release(state.device, request.table)
    host = state.host
    if request.pins is not None:
        device, host = release(device, request.pins.device), release(host, request.pins.host)
    return state._replace(requests=with_request(state, number, ENDED), device=device, host=host)


def _given_up(state: State, step: Step) -> State:
    """Its output counts for nothing, and nobody waits for the dead to run it."""
    for share in step.shares:
        if share.left and not step.handled:
            state = state._replace(device=release(state.device, share.table))
    ran = tuple([done or is_dead(state, worker) for worker, done in enumerate(step.ran)])
    step = step._replace(handled=True, ran=ran)
    if has_run_everywhere(step):
        return retired(state, step)
    return state._replace(steps=tuple([step if other.id == step.id else other for other in state.steps]))
