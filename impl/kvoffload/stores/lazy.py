"""Lazy stores: cached free blocks go to the host before they are evicted."""

from collections.abc import Collection, Container, Iterator
from itertools import islice

from kvoffload.block_pool import BlockPool
from kvoffload.ids import NO_KEY, Block, Key, Pair
from kvoffload.stores.choice import Choice


def choose(
    device: BlockPool, host: BlockPool, storing: Collection[Key], window: int, kept: Container[Block] = ()
) -> Iterator[Choice]:
    """At most one store, of free device blocks from the eviction end; nothing is changed.

    Of the first `window` free blocks (0: of all) those are taken whose key is neither on the host nor being stored.
    Each needs a free host block. If the next of these serves a key that the device still has, the search ends: storing
    would only drop what will have to be stored again (host memory would be turned over without end). Host blocks that
    are `kept` are not free: the same launch cascades them.
    """
    free = host.free_blocks()
    cached = host.cache.blocks
    pairs: list[Pair] = []
    for block in islice(device.free_blocks(), window or None):
        key = device.cache.keys[block]
        if key == NO_KEY or key in cached or key in storing:
            continue
        destination = next((block for block in free if block not in kept), None)
        if destination is None or host.cache.keys[destination] in device.cache.blocks:
            break
        pairs.append(Pair(block, destination, key))
    if pairs:
        yield Choice(None, tuple(pairs), 0)
