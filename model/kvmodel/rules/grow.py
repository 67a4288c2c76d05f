"""Grow: a running request gets one more block: of a prompt that was admitted in part, or to decode into.

Before that it gives up what its window has left, even while a store still reads it (vLLM issue 42761).
"""

from kvmodel import actions, policy
from kvmodel.block_pool import HOLE, take
from kvmodel.forbidden import Forbidden
from kvmodel.request import RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State, with_request


def offered(setting: Setting, state: State, number: int) -> bool:
    return policy.wants_to_grow(setting, state, number) and policy.has_room(setting, state, number)


def check(setting: Setting, state: State, action: actions.Grow) -> None:
    """Any free blocks, at any time while it runs, up to the end of its sequence."""
    number = action.request
    if state.requests[number].phase != RUNNING:
        raise Forbidden("grow", f"request {number} does not run")
    device = policy.after_giving_up(setting, state, number)
    blocks = device.free[:1] if action.blocks is None else action.blocks
    if not blocks:
        raise Forbidden("grow", f"request {number} grows although no device block is free")
    if len(state.requests[number].table) + len(blocks) > len(setting.total_keys[number]):
        raise Forbidden("grow", f"request {number} grows beyond its last block")
    for block in blocks:
        if device.refs[block]:
            raise Forbidden(
                "pinned-is-not-evicted", f"device block {block} is given to request {number} while it is held"
            )


def apply(setting: Setting, state: State, action: actions.Grow) -> State:
    request = state.requests[action.request]
    gone = policy.left_behind(setting, state, action.request)
    device = policy.after_giving_up(setting, state, action.request)
    blocks = device.free[:1] if action.blocks is None else action.blocks
    for block in blocks:
        _, device = take(device, block)
    table = (HOLE,) * len(gone) + request.table[len(gone) :] + blocks
    return state._replace(
        device=device,
        requests=with_request(state, action.request, request._replace(table=table)),
    )
