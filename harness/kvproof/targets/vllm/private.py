"""What is read of vLLM that vLLM does not promise, all of it here but for the places where simulated copies are put.

A name that is gone is an error that names it: the adapter is wrong for that release, and not vLLM.
"""

from collections.abc import Iterator
from typing import Any

from kvproof.obligations.books import Pool, Unreadable

_GONE = object()


def read(owner: Any, *names: str) -> Any:
    """The first of these attributes that there is. Raises Unreadable."""
    for name in names:
        found = getattr(owner, name, _GONE)
        if found is not _GONE:
            return found
    raise Unreadable(f"{type(owner).__module__}.{type(owner).__name__} has no {' and no '.join(names)} in this vllm")


def pool(block_pool: Any) -> Pool:
    """The books of a BlockPool: reference counts and the free queue."""
    blocks = read(block_pool, "blocks")
    free = read(read(block_pool, "free_block_queue"), "get_all_free_blocks")()
    null = read(block_pool, "null_block")
    return Pool(
        tuple([block.ref_cnt for block in blocks]),
        tuple([block.block_id for block in free]),
        frozenset((null.block_id,)),
    )


def chunks_of(manager: Any) -> Iterator[tuple[bytes, int, int]]:
    """(offload key, chunk, reference count) of everything in a CPUOffloadingManager's tier; -1: not ready yet."""
    chunks = read(read(manager, "_policy"), "chunks", "blocks")
    name = "chunk_id" if chunks and hasattr(next(iter(chunks.values())), "chunk_id") else "block_id"
    for key, status in chunks.items():
        yield key, read(status, name), status.ref_cnt


def capacity(manager: Any) -> int:
    """Chunks of a CPUOffloadingManager (count)."""
    return int(read(manager, "_num_chunks", "_num_blocks"))


def free_chunks(manager: Any) -> tuple[int, ...]:
    """Chunks that hold nothing: those given back, then those never taken."""
    taken = read(manager, "_num_allocated_chunks", "_num_allocated_blocks")
    return (*read(manager, "_free_list"), *range(taken, capacity(manager)))


def hashes(block_pool: Any) -> Iterator[tuple[int, bytes]]:
    """(block, hash with group id) of every block of a BlockPool that can be hit: some have a hash before that."""
    cached = read(read(block_pool, "cached_block_hash_to_block"), "get_one_block")
    for block in read(block_pool, "blocks"):
        if block.block_hash is not None and cached(block.block_hash) is block:
            yield block.block_id, block.block_hash
