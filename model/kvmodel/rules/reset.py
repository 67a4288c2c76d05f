"""Reset: what it does to requests, keys and contents. What it does to jobs: reset_pinning and reset_fencing.

A reset of one tier (vLLM: `reset_prefix_cache` without its connector) drops what could be hit there, and whatever would
still publish there: loads into the device, stores into the host. The other tier, and what is on its way there, stay.
The second tier is emptied with the host that it continues.
"""

from kvmodel import actions
from kvmodel.block_pool import release
from kvmodel.contents import aged
from kvmodel.departure import cancelled, load_dropped, pins_let_go, table_let_go
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.prefix_cache import cleared
from kvmodel.request import DRAINING, LOADING, RUNNING, WAITING, WAITING_AFRESH, Request, after_draining
from kvmodel.rules import reset_fencing, reset_pinning
from kvmodel.setting import Setting
from kvmodel.state import State, with_request
from kvmodel.tiers import names_device, names_host, objection
from kvmodel.transfer_job import PROMOTION, is_queued


@guard
def has_running(state: State) -> bool:
    """Somebody could survive a reset."""
    return any(request.phase == RUNNING for request in state.requests)


def answers_true(setting: Setting, state: State, action: actions.Reset) -> bool:
    """May this reset, whose effect is `state`, say that nothing from before it will ever be served from its tiers?"""
    if setting.contract.pins:
        return reset_pinning.answer(state, action.tiers)
    return reset_fencing.answer(state, action.meaning)


def would_answer_true(setting: Setting, state: State, action: actions.Reset) -> bool:
    """The same, asked before the reset. Who is left after it decides, and not what can be hit."""
    return answers_true(setting, _owners_reset(setting, state, action), action)


def offered(setting: Setting, state: State) -> list[actions.Reset]:
    """Every reset that the client may ask for now; keeping survivors only where there would be any."""
    if not state.resets_left:
        return []
    kept = setting.scope.survivors and has_running(state)
    return [
        actions.Reset(meaning, requests, tiers)
        for meaning in setting.scope.meanings
        for tiers in setting.scope.tiers
        for requests in (("preempt", "keep") if kept or tiers == "host" else ("preempt",))
        if not objection(meaning, requests, tiers)
    ]


def check(setting: Setting, state: State, action: actions.Reset) -> None:
    """False is legal whenever something gave cause for it; True only if the effect bears it out."""
    if not state.resets_left:
        raise Forbidden("reset", "no more resets in this scope")
    if why := objection(action.meaning, action.requests, action.tiers):
        raise Forbidden("reset", why)
    if action.answer is None or action.answer == would_answer_true(setting, state, action):
        return
    if action.answer:
        raise Forbidden(
            "true-reset-serves-nothing-old", "the reset answers True while something from before it is left"
        )
    raise Forbidden("false-reset-has-a-cause", "the reset answers False although nothing from before it is left")


def apply(setting: Setting, state: State, action: actions.Reset) -> State:
    state = _owners_reset(setting, state, action)
    if names_device(action.tiers):
        state = state._replace(device=cleared(state.device))
    if names_host(action.tiers):
        state = state._replace(host=cleared(state.host), second=cleared(state.second))
    state = state._replace(resets_left=state.resets_left - 1)
    return _contents_aged(state) if action.meaning == "invalidate" else state


def _owners_reset(setting: Setting, state: State, action: actions.Reset) -> State:
    """Requests and jobs, and with them all references; not yet what can be hit, nor what it is worth."""
    for number in range(len(state.requests)):
        state = _request_reset(setting, state, number, action)
    if names_host(action.tiers):
        state = _promotions_cancelled(setting, state)
    if setting.contract.pins:
        return reset_pinning.jobs_reset(setting.contract, state, action.tiers)
    return reset_fencing.jobs_reset(setting.contract, state, action.tiers)


def _promotions_cancelled(setting: Setting, state: State) -> State:
    """Those that no worker knows of."""
    for job in state.jobs:
        if job.direction == PROMOTION and is_queued(job):
            state = cancelled(setting.contract, state, job)
    return state


def _request_reset(setting: Setting, state: State, number: int, action: actions.Reset) -> State:
    """A lookup is given up whichever tier it found its blocks on: what is left of it need not be a prefix."""
    request = state.requests[number]
    if request.phase == WAITING:
        return pins_let_go(state, number, WAITING_AFRESH._replace(jobs=_jobs_kept(request, action)))
    if request.phase == RUNNING and action.requests == "keep":
        return state._replace(requests=with_request(state, number, _survivor(request, action)))
    if not names_device(action.tiers):
        return state
    if request.phase == LOADING:
        return table_let_go(load_dropped(setting.contract, state, number), number, WAITING_AFRESH)
    if request.phase == DRAINING:
        return state._replace(
            requests=with_request(state, number, after_draining(request)), device=release(state.device, request.table)
        )
    if request.phase != RUNNING:
        return state
    return table_let_go(state, number, WAITING_AFRESH._replace(jobs=_jobs_kept(request, action)))


def _jobs_kept(request: Request, action: actions.Reset) -> tuple[int, ...]:
    """What a request goes on waiting for: a promotion into a host tier that is not reset, and under fencing stores."""
    return () if names_host(action.tiers) else request.jobs


def _survivor(request: Request, action: actions.Reset) -> Request:
    """A running request that keeps its blocks. What it had offered to a host tier that is empty now it offers again
    (vLLM PR 41956: a cursor that stays behind its blocks never lets them be stored again)."""
    if action.meaning == "invalidate":
        return request._replace(jobs=(), outdated=True)
    if names_host(action.tiers):
        return request._replace(jobs=(), stored=0)
    return request


def _contents_aged(state: State) -> State:
    """The weights changed: what every block holds, and what every launched compute will write, is of the old ones."""
    steps = tuple(
        [step._replace(shares=tuple([share._replace(outdated=True) for share in step.shares])) for step in state.steps]
    )
    return state._replace(
        device_contents=aged(state.device_contents),
        host_contents=aged(state.host_contents),
        second_contents=aged(state.second_contents),
        steps=steps,
    )
