"""The policy: how the reference resolves every choice. The contract (`Machine.check`) allows many more."""

from kvmodel.actions import Admission, Launching
from kvmodel.block_pool import HOLE, Pool, release, take, touch
from kvmodel.fence import required_flush, still_flushed
from kvmodel.guards import guard
from kvmodel.launched_step import is_in_launched_step, reach, shares_of
from kvmodel.prefix_cache import is_cached, longest_hit
from kvmodel.request import RUNNING, Pins, Request
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import LIVE, NONE, PROMOTION, STORE, Pair


def hits(setting: Setting, state: State, number: int) -> Pins:
    """The longest prefix of the prompt that is cached on the device, then the run after it that is on the host."""
    keys = setting.prompt_keys[number]
    device = longest_hit(state.device, keys)
    return Pins(device, longest_hit(state.host, keys[len(device) :]))


def admission(setting: Setting, state: State, number: int) -> Admission:
    """All hits are used; the least recently used free blocks are taken for as much of the rest as is `reserved`."""
    pins = state.requests[number].pins
    found = hits(setting, state, number) if pins is None else pins
    needed = reserved(setting, number, found) - len(found.device)
    free = [block for block in state.device.free if block not in found.device]
    return Admission(found.device, found.host, tuple(free[:needed]))


def reserved(setting: Setting, number: int, found: Pins) -> int:
    """Leading blocks that a request is admitted with (count): all of its prompt; or what it hits, and at least one."""
    if setting.contract.partial:
        return max(len(found.device) + len(found.host), 1)
    return len(setting.prompt_keys[number])


@guard
def is_being_stored(state: State, key: int) -> bool:
    """A live store carries this key to the host, or a live promotion: storing it again would make two copies (vLLM PR
    41289)."""
    return any(
        job.direction in (STORE, PROMOTION) and job.view == LIVE and any(pair.key == key for pair in job.pairs)
        for job in state.jobs
    )


@guard
def is_full(pool: Pool) -> bool:
    """Every block has references: nothing may be evicted, the store is skipped and retried later."""
    return not pool.free


@guard
def would_thrash(upper: Pool, lower: Pool) -> bool:
    """The block that a lazy store or a cascade would evict holds a key that is still on the tier above: it would come
    back next."""
    return lower.keys[lower.free[0]] in upper.keys and lower.keys[lower.free[0]] != 0


def launching(setting: Setting, state: State) -> Launching:
    """Everything that wants compute gets it; everything that can be stored is; everything that must be flushed is."""
    computes = tuple(
        [
            (number, start, len(request.table))
            for number, request in enumerate(state.requests)
            if request.phase == RUNNING and (start := reach(state.steps, number, request.computed)) < len(request.table)
        ]
    )
    cascade = cascade_of(setting, state)
    stores, cursors = stores_beside(setting, state, cascade)
    flush: tuple[int, ...] = ()
    if state.jobs and setting.contract.pins:
        flush = still_flushed(state)
    elif state.jobs:
        tables = tuple([(state.requests[number].table[:end], start) for number, start, end in computes])
        flush = required_flush(state, tables, tuple([pairs for _, pairs in stores]))
    return Launching(computes, stores, cursors, flush, cascade)


Stores = tuple[tuple[int, tuple[Pair, ...]], ...]
Cursors = tuple[tuple[int, int], ...]


def stores_beside(setting: Setting, state: State, cascade: tuple[Pair, ...]) -> tuple[Stores, Cursors]:
    """The stores that a launch with this cascade makes, as the store mode says. What is cascaded is not evicted for
    them: they wait until it is below."""
    if cascade:
        state = state._replace(host=touch(state.host, [pair.source for pair in cascade]))
    return lazy_stores(setting, state) if setting.contract.lazy else eager_stores(setting, state)


@guard
def offers_blocks(request: Request) -> bool:
    """Eager: a running request has blocks that were never offered to the host, and their KV is of these weights."""
    return request.phase == RUNNING and not request.outdated and request.stored < len(request.table)


def eager_stores(setting: Setting, state: State) -> tuple[Stores, Cursors]:
    """One job for each running request: its blocks from the cursor on, those included that this launch computes.

    A key that is on the host or on its way there is passed over. When the host is full the cursor stops, and the
    rest is offered again by the next launch: as the table is then, so that what the window has left is passed over
    (vLLM PR 42959: a store that was put off named a block by then somebody else's).
    """
    stores: list[tuple[int, tuple[Pair, ...]]] = []
    cursors: list[tuple[int, int]] = []
    host = state.host
    chosen: set[int] = set()
    for number, request in enumerate(state.requests):
        if not offers_blocks(request):
            continue
        pairs: list[Pair] = []
        cursor = request.stored
        for block in request.table[cursor:]:
            if block == HOLE:
                cursor += 1
                continue
            key = setting.total_keys[number][cursor]
            if not (key in chosen or is_cached(host, key) or is_being_stored(state, key)):
                if is_full(host):
                    break
                destination, host = take(host)
                pairs.append(Pair(block, destination, key))
                chosen.add(key)
            cursor += 1
        if cursor != request.stored:
            cursors.append((number, cursor))
        if pairs:
            stores.append((NONE if setting.contract.pins else number, tuple(pairs)))
    return tuple(stores), tuple(cursors)


def lazy_stores(setting: Setting, state: State) -> tuple[Stores, Cursors]:
    """One job for all cached free device blocks near eviction that the host lacks, while it has room."""
    pairs: list[Pair] = []
    host = state.host
    for block in state.device.free[: setting.scope.lazy_window or None]:
        key = state.device.keys[block]
        if not key or is_cached(host, key) or is_being_stored(state, key):
            continue
        if is_full(host) or would_thrash(state.device, host):
            break
        destination, host = take(host)
        pairs.append(Pair(block, destination, key))
    return (((NONE, tuple(pairs)),) if pairs else ()), ()


def cascade_of(setting: Setting, state: State) -> tuple[Pair, ...]:
    """What a launch takes on to the second tier: cached host blocks that nobody holds, the next to be evicted first,
    whose keys that tier lacks, while it has room. What is on its way there is held by its cascade."""
    if not setting.scope.second_blocks:
        return ()
    second = state.second
    pairs: list[Pair] = []
    for block in state.host.free:
        key = state.host.keys[block]
        if not key or is_cached(second, key):
            continue
        if is_full(second) or would_thrash(state.host, second):
            break
        destination, second = take(second)
        pairs.append(Pair(block, destination, key))
    return tuple(pairs)


def promotion(setting: Setting, state: State, number: int) -> tuple[Pair, ...]:
    """What a promotion for a request would bring to the host: keys of its prompt, from where its device hits end, that
    the second tier alone has, up to the first that nobody has or for which no host block is free. The least recently
    used are taken, but none that holds an earlier key of the prompt; one that holds a later key is of less use."""
    keys = setting.prompt_keys[number]
    rest = keys[len(longest_hit(state.device, keys)) :]
    host = state.host
    pairs: list[Pair] = []
    for position, key in enumerate(rest):
        if is_cached(host, key) or key in rest[:position]:
            continue
        free = [block for block in host.free if host.keys[block] not in rest[:position]]
        if not (free and is_cached(state.second, key)) or is_being_stored(state, key):
            break
        destination, host = take(host, free[0])
        pairs.append(Pair(state.second.keys.index(key), destination, key))
    return tuple(pairs)


@guard
def wants_promotion(setting: Setting, state: State, number: int) -> bool:
    """The second tier alone has what a waiting request would hit next, the host has room for it, and nothing was
    promoted for it yet. Its lookup and its admission are for afterwards."""
    request = state.requests[number]
    if not setting.scope.second_blocks or request.promoted or request.pins is not None:
        return False
    return bool(promotion(setting, state, number))


@guard
def wants_to_grow(setting: Setting, state: State, number: int) -> bool:
    """All its blocks are computed or being computed, there are more to come (of its prompt, if it was admitted in part,
    or to decode), and the pipeline is deep enough: at depth 1 it is in no launched step, at depth 2 in one at most."""
    request = state.requests[number]
    return (
        request.phase == RUNNING
        and len(request.table) < len(setting.total_keys[number])
        and reach(state.steps, number, request.computed) == len(request.table)
        and len(shares_of(state.steps, number)) < setting.contract.depth
    )


def left_behind(setting: Setting, state: State, number: int) -> range:
    """Positions that a request gives up when it grows: their blocks are computed, and beyond its window."""
    if not setting.scope.window or is_in_launched_step(state.steps, number):
        return range(0)
    return range(max(0, state.requests[number].computed - setting.scope.window))


def after_giving_up(setting: Setting, state: State, number: int) -> Pool:
    """The device pool without the references on what a request leaves behind as it grows. A store may still read that:
    under pinning it holds it, under fencing whoever takes it waits for the copy."""
    table = state.requests[number].table
    return release(state.device, [table[position] for position in left_behind(setting, state, number)])


@guard
def has_room(setting: Setting, state: State, number: int) -> bool:
    """A block is free for it, or becomes free as it leaves one behind."""
    return bool(state.device.free) or bool(after_giving_up(setting, state, number).free)


@guard
def is_outranked(setting: Setting, state: State) -> bool:
    """A running request wants to grow: it comes before whoever waits. Otherwise the block that a preemption under
    pressure freed goes to the one preempted, or to its lookup, and so on for ever (vLLM admits nobody in a step that
    preempted)."""
    if not (setting.scope.decode or setting.scope.decoded or setting.contract.partial):
        return False
    return any(wants_to_grow(setting, state, number) for number in range(len(state.requests)))


@guard
def is_preemptible(state: State, number: int) -> bool:
    """Running, and in no launched step: its blocks can be given to others at once (vLLM PR 49675)."""
    return state.requests[number].phase == RUNNING and not is_in_launched_step(state.steps, number)


def pressure_victim(setting: Setting, state: State) -> int | None:
    """Whom to preempt so that another request can grow: the last running request that is in no launched step.

    Nobody, if a free block is left, if no request wants to grow or the first that does leaves a block behind, or if
    only earlier ones could go: a later request
    never preempts an earlier one, so that of two which do not fit together the earlier one gets to its end.
    """
    if not is_full(state.device):
        return None
    numbers = range(len(state.requests))
    growing = next((number for number in numbers if wants_to_grow(setting, state, number)), None)
    if growing is None or has_room(setting, state, growing):
        return None
    return next((number for number in reversed(numbers) if number > growing and is_preemptible(state, number)), None)
