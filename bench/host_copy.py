"""Copy throughput of the host device beside one thread that copies plain tensors.

    python bench/host_copy.py [megabytes per measurement, default 256]

Both copy the same blocks, layer by layer, in the same order. The device is free-running, so its figures include
enqueueing, handing over to the stream's thread, and waiting until all has run.
"""

import statistics
import sys
import time
from collections.abc import Callable

from kvoffload.devices.host import Host
from kvoffload.operations import Copy, Stream

# Imported after kvoffload, which keeps torch from warning about an absent numpy.
import torch  # isort: skip

LAYERS = 4
BLOCKS = 32
PAIRS = 8
REPEATS = 5


def seconds(measured: Callable[[], None]) -> float:
    """The median of some runs, after one that touches the memory."""
    measured()
    took: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        measured()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


def plain(block_bytes: int, copies: int) -> float:
    """One thread, one `copy_` per layer and block."""
    words = block_bytes // 8
    source = [torch.ones((BLOCKS, words), dtype=torch.int64) for _ in range(LAYERS)]
    destination = [torch.zeros((BLOCKS, words), dtype=torch.int64) for _ in range(LAYERS)]

    def measured() -> None:
        for copy in range(copies):
            for layer in range(LAYERS):
                for pair in range(PAIRS):
                    block = (copy * PAIRS + pair) % BLOCKS
                    destination[layer][block].copy_(source[layer][block])

    return seconds(measured)


def device(block_bytes: int, copies: int, workers: int, streams: tuple[Stream, ...]) -> float:
    """The same copies, shared out equally between the streams of the workers; together they touch as much memory."""
    lanes = workers * len(streams)
    span = BLOCKS // lanes
    with Host(workers, BLOCKS, BLOCKS, layers=LAYERS, block_bytes=block_bytes) as host:
        job = 0

        def measured() -> None:
            nonlocal job
            for copy in range(copies // lanes):
                for place, stream in enumerate(streams):
                    blocks = [place * span + (copy * PAIRS + pair) % span for pair in range(PAIRS)]
                    pairs = tuple((block, block) for block in blocks)
                    for worker in range(workers):
                        host.enqueue(worker, Copy(job, stream, pairs, -1, ()))
                    job += 1
            host.drain()

        return seconds(measured)


def main(megabytes: int) -> None:
    torch.set_num_threads(1)  # else torch splits large copies by itself, and there is no single thread to compare with
    print(f"GB/s copied, {LAYERS} layers, {PAIRS} blocks per copy, {megabytes} MB, median of {REPEATS}")
    print(f"{'block':>9} {'one thread':>11} {'1 stream':>11} {'2 workers':>11} {'2 workers, store and load':>26}")
    for block_bytes in (4 << 10, 64 << 10, 256 << 10, 1 << 20):
        per_copy = LAYERS * PAIRS * block_bytes
        copies = max(8, (megabytes << 20) // per_copy // 4 * 4)
        volume = copies * per_copy / 1e9
        figures = (
            plain(block_bytes, copies),
            device(block_bytes, copies, 1, (Stream.STORE,)),
            device(block_bytes, copies, 2, (Stream.STORE,)),
            device(block_bytes, copies, 2, (Stream.STORE, Stream.LOAD)),
        )
        cells = "".join(f"{volume / took:{width}.2f}" for took, width in zip(figures, (12, 12, 12, 27), strict=True))
        print(f"{block_bytes >> 10:5} KiB{cells}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
