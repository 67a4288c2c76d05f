"""Admit: a waiting request gets its blocks; what the host has is loaded.

The policy admits a prompt wholly or not at all, and does not count a hit that is itself free as room for the rest
(vLLM issues 45388 and 45387: admission by the loaded prefix alone ends in a circular wait). With partial admission it
does admit by the loaded prefix alone. What keeps that from ending so are two rules: nobody is admitted while a running
request wants a block, and whoever wants one preempts later requests and never earlier ones (`policy.pressure_victim`).
A request that loads cannot be preempted; but its load ends, it is woken whatever stands in the queue, and then it can.
"""

from kvmodel import actions, policy
from kvmodel.block_pool import release, take, touch
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.request import LOADING, RUNNING, WAITING, Pins, Request
from kvmodel.rules.lookup import check_hits, is_deferred
from kvmodel.setting import Setting
from kvmodel.state import State, with_request
from kvmodel.transfer_job import LIVE, LOAD, QUEUED, Job, Pair


@guard
def has_looked_up(state: State, number: int) -> bool:
    return state.requests[number].pins is not None


@guard
def fits(setting: Setting, state: State, number: int) -> bool:
    """There are free blocks for all that it is admitted with, beside its hits."""
    choice = policy.admission(setting, state, number)
    wanted = policy.reserved(setting, number, Pins(choice.device, choice.host))
    return len(choice.device) + len(choice.fresh) == wanted


def offered(setting: Setting, state: State, number: int) -> bool:
    if state.requests[number].phase != WAITING or is_deferred(state, number):
        return False
    if setting.scope.lookups and not has_looked_up(state, number):
        return False
    if not fits(setting, state, number) or policy.is_outranked(setting, state):
        return False
    return not policy.wants_promotion(setting, state, number)


def check(setting: Setting, state: State, action: actions.Admit) -> None:
    """Any prefix of the hits may be used, with fresh blocks for what is loaded and for any part of the rest."""
    number, choice = action.request, action.choice
    if state.requests[number].phase != WAITING:
        raise Forbidden("admit", f"request {number} does not wait")
    if is_deferred(state, number):
        raise Forbidden("admit", f"request {number} has jobs outstanding and must be deferred")
    if choice is None:
        if not fits(setting, state, number):
            raise Forbidden("admit", f"request {number} does not fit into the free device blocks")
        return
    check_hits(setting, state, number, choice.device, choice.host)
    if len(choice.fresh) < len(choice.host):
        raise Forbidden("admit", f"request {number} loads {len(choice.host)} blocks into {len(choice.fresh)}")
    if len(choice.device) + len(choice.fresh) > len(setting.total_keys[number]):
        raise Forbidden("admit", f"request {number} gets more blocks than it has keys")
    for block in choice.fresh:
        if state.device.refs[block] or block in choice.device:
            raise Forbidden(
                "pinned-is-not-evicted", f"device block {block} is given to request {number} while it is held"
            )


def beyond(blocks: tuple[int, ...], others: tuple[int, ...]) -> list[int]:
    """What is in `blocks` more often than in `others`: a block that is hit at two positions has two references."""
    left = list(others)
    found: list[int] = []
    for block in blocks:
        if block in left:
            left.remove(block)
        else:
            found.append(block)
    return found


def apply(setting: Setting, state: State, action: actions.Admit) -> State:
    number = action.request
    choice = action.choice or policy.admission(setting, state, number)
    keys = setting.prompt_keys[number]
    pins = state.requests[number].pins or Pins((), ())
    device = touch(state.device, beyond(choice.device, pins.device))
    device = release(device, beyond(pins.device, choice.device))
    host = touch(state.host, beyond(choice.host, pins.host))
    host = release(host, beyond(pins.host, choice.host))
    for block in choice.fresh:
        _, device = take(device, block)
    table = choice.device + choice.fresh
    hit = len(choice.device)
    if not choice.host:
        request = Request(RUNNING, table, hit)
        return state._replace(device=device, host=host, requests=with_request(state, number, request))
    pairs = tuple(
        [Pair(source, table[hit + position], keys[hit + position]) for position, source in enumerate(choice.host)]
    )
    if setting.contract.pins:
        device = touch(device, [pair.destination for pair in pairs])
    job = Job(state.next_job, LOAD, number, pairs, LIVE, (QUEUED,) * setting.scope.workers)
    return state._replace(
        device=device,
        host=host,
        requests=with_request(state, number, Request(LOADING, table, hit, jobs=(job.id,))),
        jobs=(*state.jobs, job),
        next_job=state.next_job + 1,
    )
