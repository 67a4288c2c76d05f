"""Promotions: which blocks of the second tier are brought back to the host for a request that would hit them there."""

from collections.abc import Container, Sequence

from kvoffload.block_pool import BlockPool
from kvoffload.ids import Key, Pair


def choose(keys: Sequence[Key], host: BlockPool, second: BlockPool, storing: Container[Key]) -> tuple[Pair, ...]:
    """What the second tier alone has of these keys of a prompt, up to the first that nobody has; nothing is changed.

    A key that is on its way to the host is nobody's yet. Each needs a free host block, from the eviction end; one that
    serves an earlier key of the prompt is no such block, while one that serves a later key is: a prefix is worth more.
    """
    free = host.free_blocks()
    evicted: set[Key] = set()
    earlier: set[Key] = set()
    pairs: list[Pair] = []
    for key in keys:
        if key not in earlier and (key not in host.cache.blocks or key in evicted):
            source = second.cache.blocks.get(key)
            if source is None or key in storing:
                break
            destination = next((block for block in free if host.cache.keys[block] not in earlier), None)
            if destination is None:
                break
            evicted.add(host.cache.keys[destination])
            pairs.append(Pair(source, destination, key))
        earlier.add(key)
    return tuple(pairs)
