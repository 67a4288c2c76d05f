"""HandleOutput: the scheduler handles the output of the oldest launched step, and publishes what it computed."""

from kvmodel import actions
from kvmodel.block_pool import release
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.launched_step import Share, Step, awaited
from kvmodel.prefix_cache import publish
from kvmodel.rules.run import has_run_everywhere, retired
from kvmodel.setting import Setting
from kvmodel.state import State, with_request


@guard
def is_computed(setting: Setting, step: Step) -> bool:
    """The workers whose compute ends a step have run it: all of them, or the first."""
    return step.ran[0] if setting.contract.output_from == "first" else all(step.ran)


@guard
def has_left(share: Share) -> bool:
    """Its request is gone: the output of a finished, aborted or preempted request changes nothing."""
    return share.left


@guard
def is_outdated(share: Share) -> bool:
    return share.outdated


def offered(setting: Setting, state: State) -> bool:
    step = awaited(state.steps)
    return step is not None and is_computed(setting, step)


def check(setting: Setting, state: State, action: actions.HandleOutput) -> None:
    if not offered(setting, state):
        raise Forbidden("handle-output", "no step is awaited whose compute has run")


def apply(setting: Setting, state: State, action: actions.HandleOutput) -> State:
    step = awaited(state.steps)
    assert step is not None
    for share in step.shares:
        state = _share_left(state, share) if has_left(share) else _share_handled(setting, state, share)
    handled = step._replace(handled=True)
    if has_run_everywhere(handled):
        return retired(state, handled)
    return state._replace(steps=tuple([handled if other.id == step.id else other for other in state.steps]))


def _share_left(state: State, share: Share) -> State:
    """The step owned the blocks of a request that went away while it ran; now nothing writes them any more."""
    return state._replace(device=release(state.device, share.table))


def _share_handled(setting: Setting, state: State, share: Share) -> State:
    request = state.requests[share.request]._replace(computed=len(share.table))
    state = state._replace(requests=with_request(state, share.request, request))
    if is_outdated(share):
        return state
    device = state.device
    keys = setting.total_keys[share.request]
    for position in range(share.start, len(share.table)):
        device = publish(device, share.table[position], keys[position])
    return state._replace(device=device)
