"""Lookup and ReleaseLookup: the longest cached prefix is found, and pinned until the request is admitted.

Without the pin an allocation in between evicts the hit (vLLM issue 39702, fixed by PR 42289).
"""

from kvmodel import actions, policy
from kvmodel.block_pool import touch
from kvmodel.departure import pins_let_go
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.request import WAITING, Pins
from kvmodel.setting import Setting
from kvmodel.state import State, with_request


@guard
def is_deferred(state: State, number: int) -> bool:
    """It has jobs of its own outstanding: its lookup answers Defer (vLLM PR 46231). Under pinning only a promotion is
    such a job."""
    return bool(state.requests[number].jobs)


def offered(setting: Setting, state: State, number: int) -> bool:
    """Nobody looks up while a running request wants a block: what a lookup pins is what that one lacks."""
    return (
        state.requests[number].phase == WAITING
        and setting.scope.lookups
        and not is_deferred(state, number)
        and not policy.is_outranked(setting, state)
        and not policy.wants_promotion(setting, state, number)
    )


def release_offered(state: State, number: int) -> bool:
    return state.requests[number].pins is not None


def check(setting: Setting, state: State, action: actions.Lookup) -> None:
    """Any prefix of the cached prefix may be found; a block that is not cached under the key may not."""
    number = action.request
    if state.requests[number].phase != WAITING:
        raise Forbidden("lookup", f"request {number} does not wait")
    if is_deferred(state, number):
        raise Forbidden("lookup", f"request {number} has jobs outstanding and must be deferred")
    if action.hits is not None:
        check_hits(setting, state, number, action.hits[0], action.hits[1])


def check_hits(setting: Setting, state: State, number: int, device: tuple[int, ...], host: tuple[int, ...]) -> None:
    """Hits are a prefix of the keys, each in a block that is cached under it or that the lookup already pins."""
    keys = setting.prompt_keys[number]
    if len(device) + len(host) > len(keys):
        raise Forbidden("hits-are-prefix-closed", f"request {number} hits more blocks than its prompt has")
    pins = state.requests[number].pins or Pins((), ())
    for tier, pool, kept, blocks, wanted in (
        ("device", state.device, pins.device, device, keys),
        ("host", state.host, pins.host, host, keys[len(device) :]),
    ):
        for block, key in zip(blocks, wanted, strict=False):
            if pool.keys[block] != key and block not in kept:
                name = setting.key_names[key - 1]
                raise Forbidden(
                    "hits-are-prefix-closed", f"{tier} block {block} is hit as {name!r} but is not cached as that"
                )


def apply(setting: Setting, state: State, action: actions.Lookup) -> State:
    """What an earlier lookup pinned is given up first: a repeated lookup never pins twice (vLLM issue 39702)."""
    number = action.request
    state = pins_let_go(state, number, state.requests[number]._replace(pins=None))
    pins = policy.hits(setting, state, number) if action.hits is None else Pins(*action.hits)
    return state._replace(
        device=touch(state.device, pins.device),
        host=touch(state.host, pins.host),
        requests=with_request(state, number, state.requests[number]._replace(pins=pins)),
    )


def check_release(setting: Setting, state: State, action: actions.ReleaseLookup) -> None:
    if not release_offered(state, action.request):
        raise Forbidden("release-lookup", f"request {action.request} pins nothing")


def apply_release(setting: Setting, state: State, action: actions.ReleaseLookup) -> State:
    return pins_let_go(state, action.request, state.requests[action.request]._replace(pins=None))
