"""Cascades: what nobody holds on the host goes on to the second tier before it is evicted."""

from kvoffload.block_pool import BlockPool
from kvoffload.ids import NO_KEY, Pair


def choose(host: BlockPool, second: BlockPool) -> tuple[Pair, ...]:
    """Cached host blocks without references whose keys the second tier lacks, from the eviction end. Nothing changes.

    Each needs a free block of the second tier. If the next of these serves a key that the host still has, the search
    ends: what it would drop would have to come down again (as `lazy` stores end). What is on its way down is referenced
    by its job, and so is not chosen again.
    """
    free = second.free_blocks()
    there = second.cache.blocks
    pairs: list[Pair] = []
    for block in host.free_blocks():
        key = host.cache.keys[block]
        if key == NO_KEY or key in there:
            continue
        destination = next(free, None)
        if destination is None or second.cache.keys[destination] in host.cache.blocks:
            break
        pairs.append(Pair(block, destination, key))
    return tuple(pairs)
