"""Failure: what the scheduler makes of copies that failed. They publish nothing, and nobody is left waiting for them.

A failed store or cascade may be made again; what a load or a promotion failed to bring is computed instead. Nobody
shares a block that a load failed to fill: no load publishes its destinations before it is complete, so that no other
request can have hit one.
"""

from collections.abc import Collection

from kvmodel.block_pool import Pool
from kvmodel.departure import pins_let_go
from kvmodel.guards import guard
from kvmodel.request import RUNNING, Request
from kvmodel.setting import Setting
from kvmodel.state import State, with_request
from kvmodel.transfer_job import CASCADE, PROMOTION, STORE, Job, Pair


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
    if job.direction == CASCADE:
        return state  # the host has it still: while it does, the next launch cascades it again
    if job.direction == STORE:
        return _offered_again(setting, state, {pair.key for pair in failed})
    if job.direction == PROMOTION:
        state = state._replace(second=_without_keys(state.second, failed))
        return _offered_again(setting, state, {pair.key for pair in failed})
    return _withdrawn(state, failed)


def _offered_again(setting: Setting, state: State, keys: Collection[int]) -> State:
    """Whoever has passed over a key that is not on the host after all steps back to it: the request whose store failed,
    and those that left the key to that store, or to a promotion (vLLM PR 41289 passes over what is on its way)."""
    for number, request in enumerate(state.requests):
        if has_passed(setting, state, number, keys):
            first = next(at for at, key in enumerate(setting.total_keys[number]) if key in keys)
            state = state._replace(requests=with_request(state, number, request._replace(stored=first)))
    return state


def _without_keys(pool: Pool, unreadable: Collection[Pair]) -> Pool:
    """What could not be read can be hit no more, where the block serves that key still."""
    of = {pair.source: pair.key for pair in unreadable}
    return pool._replace(keys=tuple([0 if of.get(block) == key else key for block, key in enumerate(pool.keys)]))


def _withdrawn(state: State, unreadable: Collection[Pair]) -> State:
    """What could not be read is not offered again: its key leaves the host, and a lookup that found it looks again.
    Else everybody who shares the key fails in turn, for ever (vLLM issue 49176, PR 49328)."""
    state = state._replace(host=_without_keys(state.host, unreadable))
    blocks = {pair.source for pair in unreadable}
    for number, request in enumerate(state.requests):
        if keeps(request, blocks):
            state = pins_let_go(state, number, request._replace(pins=None))
    return state
