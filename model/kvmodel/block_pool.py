"""A pool of blocks: reference counts and the free queue. The double free is refused here."""

from collections.abc import Sequence
from typing import NamedTuple

from kvmodel.forbidden import Forbidden

HOLE = -1
"""What stands in a table where the request has given its block up: no block at all."""


class Pool(NamedTuple):
    """One tier's blocks.

    refs  references of each block (count)
    keys  key under which each block can be hit; 0: none. A block may be free and cached at once.
    free  blocks without references, least recently used first: the next to be taken, and evicted, is free[0]
    """

    refs: tuple[int, ...]
    keys: tuple[int, ...]
    free: tuple[int, ...]


def empty_pool(blocks: int) -> Pool:
    return Pool((0,) * blocks, (0,) * blocks, tuple(range(blocks)))


def take(pool: Pool, block: int | None = None) -> tuple[int, Pool]:
    """A free block with one reference, its key evicted; the least recently used one unless the caller names it."""
    if block is None:
        if not pool.free:
            raise Forbidden("free-means-unowned", "a block is taken from a pool that has none free")
        block = pool.free[0]
    elif block not in pool.free:
        raise Forbidden("pinned-is-not-evicted", f"block {block} is taken while it has references")
    refs, keys, free = list(pool.refs), list(pool.keys), list(pool.free)
    refs[block] = 1
    keys[block] = 0
    free.remove(block)
    return block, Pool(tuple(refs), tuple(keys), tuple(free))


def touch(pool: Pool, blocks: Sequence[int]) -> Pool:
    """One more reference on each block; a free one leaves the free queue (TensorRT-LLM 12834: else two owners)."""
    if not blocks:
        return pool
    refs, free = list(pool.refs), list(pool.free)
    for block in blocks:
        if block == HOLE:
            continue
        if not refs[block]:
            free.remove(block)
        refs[block] += 1
    return Pool(tuple(refs), pool.keys, tuple(free))


def release(pool: Pool, blocks: Sequence[int]) -> Pool:
    """One reference less on each block, last to first, so that a prefix outlives its extensions in the free queue
    (vLLM releases tables tail first for the same reason). A block without references is a double free: refused."""
    if not blocks:
        return pool
    refs, free = list(pool.refs), list(pool.free)
    for block in reversed(blocks):
        if block == HOLE:
            continue
        if not refs[block]:
            raise Forbidden("no-double-free", f"block {block} is released although it has no references")
        refs[block] -= 1
        if not refs[block]:
            free.append(block)
    return Pool(tuple(refs), pool.keys, tuple(free))
