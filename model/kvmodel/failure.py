"""Failure: what the scheduler makes of copies that failed. They publish nothing, and nobody is left waiting for them.

A failed store may be made again; a failed load is computed instead. Nobody shares a block that a load failed to fill:
no load publishes its destinations before it is complete, so that no other request can have hit one.
"""

from collections.abc import Collection

from kvmodel.departure import pins_let_go
from kvmodel.guards import guard
from kvmodel.request import RUNNING, WAITING_AFRESH, Request
from kvmodel.setting import Setting
from kvmodel.state import State, with_request
from kvmodel.transfer_job import STORE, Job


@guard
def has_passed(setting: Setting, state: State, number: int, keys: Collection[int]) -> bool:
    """A running request counts one of these keys as offered to the host."""
    request = state.requests[number]
    return request.phase == RUNNING and any(key in keys for key in setting.total_keys[number][: request.stored])


def keeps(request: Request, blocks: Collection[int]) -> bool:
    """A lookup has found one of these host blocks, and is going to load it."""
    return request.pins is not None and any(block in blocks for block in request.pins.host)


def failure_faced(setting: Setting, state: State, job: Job, positions: Collection[int]) -> State:
    """The state after a live job, complete and released, that failed at these positions of its pairs."""
    failed = [pair for position, pair in enumerate(job.pairs) if position in positions]
    if job.direction == STORE:
        return _offered_again(setting, state, {pair.key for pair in failed})
    return _withdrawn(state, {pair.source: pair.key for pair in failed})


def _offered_again(setting: Setting, state: State, keys: Collection[int]) -> State:
    """Whoever has passed over a key that is not on the host after all steps back to it: the request whose store failed,
    and those that left the key to that store (vLLM PR 41289 passes over what is on its way)."""
    for number, request in enumerate(state.requests):
        if has_passed(setting, state, number, keys):
            first = next(at for at, key in enumerate(setting.total_keys[number]) if key in keys)
            state = state._replace(requests=with_request(state, number, request._replace(stored=first)))
    return state


def _withdrawn(state: State, unreadable: dict[int, int]) -> State:
    """What could not be read is not offered again: its key leaves the host, and a lookup that found it looks again.
    Else everybody who shares the key fails in turn, for ever (vLLM issue 49176, PR 49328)."""
    keys = [0 if unreadable.get(block) == key else key for block, key in enumerate(state.host.keys)]
    state = state._replace(host=state.host._replace(keys=tuple(keys)))
    for number, request in enumerate(state.requests):
        if keeps(request, unreadable):
            state = pins_let_go(state, number, WAITING_AFRESH)
    return state
