"""Copies of blocks from one tier in the host's memory to another, what fails of them, and a thread that makes them."""

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from kvoffload.kv_tensors import KVTensors


def copy_blocks(
    source: KVTensors,
    destination: KVTensors,
    pairs: Sequence[tuple[int, int]],
    failing: Collection[int],
    between_layers: Callable[[], None] | None = None,
) -> tuple[int, ...]:
    """Copy pairs of (source block, destination block). Answers, in order, the positions of those that failed.

    failing         positions of pairs that are made to fail: they are broken off
    between_layers  called after each layer; None: all layers are copied at once
    """
    for position in failing:
        destination.break_off(pairs[position][1])
    whole = [pair for position, pair in enumerate(pairs) if position not in failing] if failing else pairs
    layers = range(source.pattern.layers)
    # Layer by layer, as engines keep their caches: a block that is read too early is truly seen half copied.
    try:
        if between_layers is None:
            destination.copy(source, whole, layers)
            return tuple(sorted(failing))
        for layer in layers:
            destination.copy(source, whole, (layer,))
            between_layers()
    except RuntimeError:  # torch's errors: whose they are is found out, and nothing else is lost
        return tuple([at for at, pair in enumerate(pairs) if at in failing or not _copied(source, destination, pair)])
    return tuple(sorted(failing))


def _copied(source: KVTensors, destination: KVTensors, pair: tuple[int, int]) -> bool:
    """Copy one block, all layers; answers whether it could be."""
    try:
        destination.copy(source, (pair,))
    except RuntimeError:
        return False
    return True


class CopyBegun:
    """A copy that a thread makes: an event that has happened once it is over."""

    def __init__(self, future: Future[tuple[int, ...]]) -> None:
        self._future = future

    def happened(self) -> bool:
        return self._future.done()

    def failed(self) -> tuple[int, ...]:
        """The positions of the pairs that failed, once it has happened. Raises what the thread raised."""
        return self._future.result()


class CopyThread:
    """A thread that makes copies in the host's memory, one after another."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    def begin(
        self,
        source: KVTensors,
        destination: KVTensors,
        pairs: Sequence[tuple[int, int]],
        failing: Collection[int],
        pause_s: float = 0.0,
    ) -> CopyBegun:
        """Copy as `copy_blocks` does, after those that were begun before and a pause. Returns at once."""

        def copied() -> tuple[int, ...]:
            time.sleep(pause_s)
            return copy_blocks(source, destination, pairs, failing)

        return CopyBegun(self._executor.submit(copied))

    def close(self) -> None:
        """End the thread, when everything that was begun is over. Idempotent."""
        self._executor.shutdown()
