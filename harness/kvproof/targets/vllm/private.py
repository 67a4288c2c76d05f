"""What is read of vLLM that vLLM does not promise, all of it here but for the places where simulated copies are put.

A name that is gone is an error that names it: the adapter is wrong for that release, and not vLLM.
"""

import io
import pickle
import re
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from kvproof.obligations.watched import Pool, Unreadable
from kvproof.targets.vllm.release import TRIED

_HERE = Path(__file__).parent
_OURS = re.compile(r"(Simulated\w+|CopyEvent|Recording\w*)\.")
"""How an exception's text begins by which Python says that vLLM calls one of these with other arguments."""

_GONE = object()


@contextmanager
def as_known(release: str) -> Iterator[None]:
    """Call vLLM in here. Raises Unreadable in place of what is raised because it is not as the adapter knows it; what
    vLLM itself raises is vLLM's."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        lacks = isinstance(error, AttributeError) and type(error.obj).__module__.startswith(__package__)
        if Path(frame.filename).parent == _HERE or lacks or _OURS.match(str(error)):
            raise unlike(release, error, f" ({Path(frame.filename).name}:{frame.lineno}, in {frame.name})") from error
        raise


def unlike(release: str, error: Exception, where: str = "") -> Unreadable:
    """That this release is not as the adapter knows it, in a sentence."""
    text = " ".join(str(error).split())
    return Unreadable(
        f"vllm {release} is not as this target knows it, {type(error).__name__}: {text:.300}{where}; "
        f"it was tried with {TRIED}"
    )


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


class _Digester(pickle.Pickler):
    """Writes down everything that is reachable, but for what decides nothing: settings, code, statistics, times."""

    def persistent_id(self, thing: Any) -> str | None:
        kind = type(thing)
        if kind is float or isinstance(thing, _CODE):
            return kind.__name__
        if kind.__module__.startswith(("vllm.config", "logging", "threading", "_thread")) or kind.__name__ in _IDLE:
            return kind.__name__
        return kind.__name__ if kind.__name__.endswith(("Stats", "Metrics")) else None


_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type)
_IDLE = frozenset({"StructuredOutputManager", "SamplingParams", "KVCacheConfig", "MultiModalRegistry"})
"""Parts of vLLM that do nothing in what is done here."""


def digest(*parts: Any) -> bytes:
    """A hash of all that these objects hold, whatever it is. Raises Unreadable where something cannot be read."""
    written = io.BytesIO()
    try:
        _Digester(written, protocol=5).dump(parts)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise Unreadable(f"the state of this vllm cannot be written down: {error}") from error
    return sha256(written.getvalue()).digest()
