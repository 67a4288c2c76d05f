"""How fast loads and stores are, by the size of a block and the number of blocks in a job, beside one large copy.

Jobs go through the device as an engine's do: enqueued, ordered, polled. The time is from the first enqueue to the last
completion that was seen. What was copied is checked afterwards.
"""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from tests.gpu.devices import Open, Opened

from kvoffload.operations import Compute, Content, Copy, Share, Stream, Tier

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
BLOCKS: Final = (16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB)
BATCHES: Final = (1, 16, 256)
LARGE: Final = 256 * MIB
ENOUGH: Final = 1 * GIB
"""Bytes that are copied in each direction for one figure, at most."""

MOST_JOBS: Final = 200
AHEAD: Final = 4
"""Jobs that are enqueued before the first of them is waited for."""


class Figure(NamedTuple):
    """Gigabytes (1e9) per second of stores and of loads, for blocks of so many bytes and so many of them in a job."""

    block_bytes: int
    batch: int
    stores: float
    loads: float


def measure(block_bytes: int, batch: int, open_device: Open, enough: int = ENOUGH) -> Figure:
    """One figure: a store and then a load of `batch` blocks, again and again."""
    device = open_device(1, batch, batch, layers=1, block_bytes=block_bytes)
    try:
        for block in range(batch):
            device.enqueue(0, Compute(block, (Share((), ((block, Content(block, 0)),)),), ()))
        device.drain()
        pairs = tuple((block, block) for block in range(batch))
        jobs = max(1, min(MOST_JOBS, enough // (block_bytes * batch)))
        _copies(device, Stream.STORE, pairs, 0, 1)  # the first time costs what no later one does
        stores = _copies(device, Stream.STORE, pairs, 1, jobs)
        _copies(device, Stream.LOAD, pairs, 1 + jobs, 1)
        loads = _copies(device, Stream.LOAD, pairs, 2 + jobs, jobs)
        for block in {0, batch // 2, batch - 1}:
            for tier in (Tier.DEVICE, Tier.HOST):
                assert device.content(tier, 0, block) == Content(block, 0)
        amount = block_bytes * batch * jobs / 1e9
        return Figure(block_bytes, batch, amount / stores, amount / loads)
    finally:
        device.close()


def _copies(device: Opened, stream: Stream, pairs: tuple[tuple[int, int], ...], first: int, jobs: int) -> float:
    """Seconds that so many jobs took."""
    began = time.perf_counter()
    enqueued = ran = 0
    while ran < jobs:
        while enqueued < jobs and enqueued < ran + AHEAD:
            device.enqueue(0, Copy(first + enqueued, stream, pairs, -1, ()))
            enqueued += 1
        for job in device.copied(0):
            device.collect(0, job)
            ran += 1
    return time.perf_counter() - began


def table(
    open_device: Open,
    *,
    large: int = LARGE,
    blocks: Sequence[int] = BLOCKS,
    batches: Sequence[int] = BATCHES,
    enough: int = ENOUGH,
) -> list[str]:
    """A line for one large copy, then one for each size and batch, with its share of the large one's rate."""
    whole = measure(large, 1, open_device, enough)
    lines = [
        f"{'one copy of ' + _size(large):>22}  stores {whole.stores:7.2f} GB/s         loads {whole.loads:7.2f} GB/s"
    ]
    for block_bytes in blocks:
        for batch in batches:
            figure = measure(block_bytes, batch, open_device, enough)
            what = f"{batch} x {_size(block_bytes)} a job"
            lines.append(
                f"{what:>22}  stores {figure.stores:7.2f} GB/s ({figure.stores / whole.stores:4.0%})  "
                f"loads {figure.loads:7.2f} GB/s ({figure.loads / whole.loads:4.0%})"
            )
    return lines


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count // KIB} KiB"
