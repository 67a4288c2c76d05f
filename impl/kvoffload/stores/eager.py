"""Eager stores: whatever running requests hold goes to the host as soon as it is computed."""

from collections.abc import Collection, Container, Iterable, Iterator

from kvoffload.block_pool import BlockPool
from kvoffload.ids import NO_BLOCK, Block, Key, Pair
from kvoffload.request import Phase, Request
from kvoffload.stores.choice import Choice


def choose(
    requests: Iterable[Request],
    host: BlockPool,
    storing: Collection[Key],
    generation: int,
    kept: Container[Block] = (),
) -> Iterator[Choice]:
    """What the running requests have to store, in the order of `requests`; nothing is changed.

    From a request's cursor on: a key that is on the host or being stored already is passed over; any other takes the
    next free host block, which evicts what that block holds; when none is left the cursor stays, so that the block is
    tried again at the next launch. Blocks that this very launch computes are included. A request of another
    `generation` stores nothing: its blocks are from before a reset. What a window has left is passed over: the table is
    read anew at each launch, so that a store that was put off never names a block of somebody else (vLLM PR 42959).
    Host blocks that are `kept` are not free: the same launch cascades them.
    """
    free = host.free_blocks()
    cached = host.cache.blocks
    evicted: set[Key] = set()
    chosen: set[Key] = set()
    for request in requests:
        if request.phase is not Phase.RUNNING or request.generation != generation:
            continue
        pairs: list[Pair] = []
        cursor = request.stored
        for block in request.table[cursor:]:
            key = request.total[cursor]
            if block == NO_BLOCK or key in storing or key in chosen or (key in cached and key not in evicted):
                cursor += 1
                continue
            destination = next((block for block in free if block not in kept), None)
            if destination is None:
                break
            evicted.add(host.cache.keys[destination])
            chosen.add(key)
            pairs.append(Pair(block, destination, key))
            cursor += 1
        if cursor != request.stored:
            yield Choice(request, tuple(pairs), cursor)
