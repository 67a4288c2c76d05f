"""Copy throughput of the host device beside one thread that copies plain tensors: a ratio, measured in one run.

    python bench/host_copy.py [megabytes per measurement, default 32]

Both copy the same blocks, layer by layer, in the same order, no two of them consecutive: as blocks lie in a pool that
has been used for a while. (Consecutive blocks the device copies in one go.) The device is free-running, so its figures
include enqueueing, handing over to the stream's thread, and waiting until all has run. Exit status 1 if one stream is
slower than FLOOR times the single thread at blocks of FLOOR_FROM bytes or more.

Figures are compared only within a run: the contestants take turns, and of each the best of its turns counts, since
what else a machine does can only slow them down. On a busy one that is not enough: then the ratio of the processor
seconds (`by cpu`), which count the enqueueing in full, tells what the copies cost.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kvoffload.devices.host import Host
from kvoffload.operations import Copy, Stream

# Imported after kvoffload, which keeps torch from warning about an absent numpy.
import torch  # isort: skip

LAYERS = 4
BLOCKS = 32
PAIRS = 8
TURNS = 60
SIZES = (4 << 10, 64 << 10, 256 << 10, 1 << 20)

FLOOR = 0.9
FLOOR_FROM = 64 << 10

STRIDE = 5
"""Between a block and the next one that is copied."""


def scattered(number: int, span: int) -> int:
    """Every block of a span in turn, none beside the one before."""
    return number * STRIDE % span


def consecutive(number: int, span: int) -> int:
    return number % span


Contestant = Callable[[], None]
"""Makes all the copies once."""


def plain(block_bytes: int, copies: int) -> Contestant:
    """One thread, and nothing but one `copy_` per layer and block: which blocks is known, and they are at hand."""
    words = block_bytes // 8
    source = [torch.ones((BLOCKS, words), dtype=torch.int64).unbind() for _ in range(LAYERS)]
    destination = [torch.zeros((BLOCKS, words), dtype=torch.int64).unbind() for _ in range(LAYERS)]
    todo = [
        (destination[layer][block], source[layer][block])
        for copy in range(copies)
        for layer in range(LAYERS)
        for block in [scattered(copy * PAIRS + pair, BLOCKS) for pair in range(PAIRS)]
    ]

    def copied() -> None:
        for to, of in todo:
            to.copy_(of)

    return copied


@contextmanager
def device(
    block_bytes: int,
    copies: int,
    workers: int = 1,
    streams: tuple[Stream, ...] = (Stream.STORE,),
    order: Callable[[int, int], int] = scattered,
) -> Iterator[Contestant]:
    """The same copies, shared out equally between the streams of the workers; together they touch as much memory."""
    lanes = workers * len(streams)
    span = BLOCKS // lanes
    jobs: list[Copy] = []
    for copy in range(copies // lanes):
        for place, stream in enumerate(streams):
            blocks = [place * span + order(copy * PAIRS + pair, span) for pair in range(PAIRS)]
            jobs.append(Copy(len(jobs), stream, tuple([(block, block) for block in blocks]), -1, ()))
    with Host(workers, BLOCKS, BLOCKS, layers=LAYERS, block_bytes=block_bytes) as host:

        def copied() -> None:
            for job in jobs:
                for worker in range(workers):
                    host.enqueue(worker, job)
            host.drain()
            for worker in range(workers):
                for done in host.copied(worker):
                    host.collect(worker, done)

        yield copied


class Took(NamedTuple):
    """The best turn of one contestant, in seconds: of the clock, and of the processor over all threads.

    The second hardly depends on what else the machine does. It is no less than the first on an idle machine.
    """

    clock: float
    processor: float


def best(contestants: tuple[Contestant, ...]) -> list[Took]:
    """What each contestant took, after one turn that touches its memory."""
    for copied in contestants:
        copied()
    took = [Took(float("inf"), float("inf"))] * len(contestants)
    for _ in range(TURNS):
        for place, copied in enumerate(contestants):
            start, used = time.perf_counter(), time.process_time()
            copied()
            clock, processor = time.perf_counter() - start, time.process_time() - used
            took[place] = Took(min(took[place].clock, clock), min(took[place].processor, processor))
    return took


def main(megabytes: int) -> int:
    torch.set_num_threads(1)  # else torch splits large copies by itself, and there is no single thread to compare with
    print(f"GB/s copied, {LAYERS} layers, {PAIRS} blocks per copy, {megabytes} MB, best of {TURNS} turns")
    print(
        f"{'block':>9} {'one thread':>11} {'1 stream':>9} {'ratio':>6} {'by cpu':>7} {'consecutive':>12}"
        f" {'4 streams':>10}"
    )
    missed = []
    for block_bytes in SIZES:
        per_copy = LAYERS * PAIRS * block_bytes
        copies = max(8, (megabytes << 20) // per_copy // 4 * 4)
        volume = copies * per_copy / 1e9
        with (
            device(block_bytes, copies) as one,
            device(block_bytes, copies, order=consecutive) as in_order,
            device(block_bytes, copies, workers=2, streams=(Stream.STORE, Stream.LOAD)) as four,
        ):
            thread, stream, run, streams = best((plain(block_bytes, copies), one, in_order, four))
        ratio = thread.clock / stream.clock
        print(
            f"{block_bytes >> 10:5} KiB {volume / thread.clock:11.2f} {volume / stream.clock:9.2f} {ratio:6.2f}"
            f" {thread.processor / stream.processor:7.2f} {volume / run.clock:12.2f} {volume / streams.clock:10.2f}",
            flush=True,
        )
        if block_bytes >= FLOOR_FROM and ratio < FLOOR:
            missed.append(f"{block_bytes >> 10} KiB: {ratio:.2f}")
    if missed:
        print(f"below {FLOOR} of one thread: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 32))
