"""Promote: blocks of the second tier are brought back to the host for a request that would hit them there.

The request waits for the promotion and is looked up and admitted afterwards: what came is a host hit like any other
(vLLM PR 40020 stages loads from lower tiers like that). Like a load the job is queued for the next launch.
"""

from kvmodel import actions, policy
from kvmodel.block_pool import take, touch
from kvmodel.forbidden import Forbidden
from kvmodel.policy import is_being_stored
from kvmodel.prefix_cache import is_cached
from kvmodel.request import WAITING
from kvmodel.rules.lookup import is_deferred
from kvmodel.setting import Setting
from kvmodel.state import State, with_request
from kvmodel.transfer_job import LIVE, PROMOTION, QUEUED, Job, Pair


def offered(setting: Setting, state: State, number: int) -> bool:
    if state.requests[number].phase != WAITING or is_deferred(state, number):
        return False
    return policy.wants_promotion(setting, state, number)


def check(setting: Setting, state: State, action: actions.Promote) -> None:
    """Anything that the second tier has and the host lacks may be promoted, into blocks that nobody holds."""
    number = action.request
    if state.requests[number].phase != WAITING:
        raise Forbidden("promote", f"request {number} does not wait")
    if is_deferred(state, number):
        raise Forbidden("promote", f"request {number} has jobs outstanding and must be deferred")
    pairs = policy.promotion(setting, state, number) if action.pairs is None else action.pairs
    if not pairs:
        raise Forbidden("promote", f"the second tier has nothing that request {number} would hit on the host")
    evicted = {state.host.keys[pair.destination] for pair in pairs}
    taken: set[int] = set()
    coming: set[int] = set()
    for pair in pairs:
        _check_pair(setting, state, pair, evicted)
        if pair.destination in taken or pair.key in coming:
            raise Forbidden("no-block-stored-twice-at-once", f"a promotion for request {number} has one block twice")
        taken.add(pair.destination)
        coming.add(pair.key)


def _check_pair(setting: Setting, state: State, pair: Pair, evicted: set[int]) -> None:
    """evicted: keys that the host loses to this very promotion; what it loses may come back with it."""
    name = setting.key_names[pair.key - 1]
    if state.second.keys[pair.source] != pair.key:
        raise Forbidden(
            "reads-what-was-written", f"{name!r} is promoted from second block {pair.source}, which does not hold it"
        )
    if (is_cached(state.host, pair.key) and pair.key not in evicted) or is_being_stored(state, pair.key):
        raise Forbidden("no-block-stored-twice-at-once", f"{name!r} is promoted although the host has it, or will have")
    if state.host.refs[pair.destination]:
        raise Forbidden("pinned-is-not-evicted", f"host block {pair.destination} is promoted into while it is held")


def apply(setting: Setting, state: State, action: actions.Promote) -> State:
    number = action.request
    pairs = policy.promotion(setting, state, number) if action.pairs is None else action.pairs
    host = state.host
    for pair in pairs:
        _, host = take(host, pair.destination)
    job = Job(state.next_job, PROMOTION, number, pairs, LIVE, (QUEUED,) * setting.scope.workers)
    request = state.requests[number]._replace(jobs=(job.id,), promoted=True)
    return state._replace(
        host=host,
        second=touch(state.second, [pair.source for pair in pairs]),
        requests=with_request(state, number, request),
        jobs=(*state.jobs, job),
        next_job=state.next_job + 1,
    )
