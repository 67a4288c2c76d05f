"""The prefix cache of a pool: which key can be hit in which block."""

from collections.abc import Sequence

from kvmodel.block_pool import Pool
from kvmodel.guards import guard


@guard
def is_cached(pool: Pool, key: int) -> bool:
    return key in pool.keys


def findable(pool: Pool) -> tuple[int, ...]:
    """Every key that can be hit, in order."""
    return tuple(sorted({key for key in pool.keys if key}))


def publish(pool: Pool, block: int, key: int) -> Pool:
    """The key can be hit from now on; if another block has it already, nothing changes (one copy per key)."""
    if is_cached(pool, key):
        return pool
    keys = list(pool.keys)
    keys[block] = key
    return pool._replace(keys=tuple(keys))


def cleared(pool: Pool) -> Pool:
    """No key can be hit any more; references and queue stay."""
    return pool._replace(keys=(0,) * len(pool.keys))


def longest_hit(pool: Pool, keys: Sequence[int]) -> tuple[int, ...]:
    """The blocks of the longest cached prefix of `keys`."""
    blocks: list[int] = []
    for key in keys:
        if key not in pool.keys:
            break
        blocks.append(pool.keys.index(key))
    return tuple(blocks)
