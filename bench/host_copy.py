"""Copy throughput of the host device beside one thread that copies plain tensors: a ratio, measured in one run.

    python bench/host_copy.py [megabytes of each tier, default 128]

Both copy every block of the same memory once, layer by layer, in the same order, no two of them consecutive: as blocks
lie in a pool that has been used for a while. The tiers are larger than the caches, as those of an engine are. The one
thread is the faster of two: with one `copy_` for each layer and block, and with one call of torch for everything. The
device is free-running, so its figures include enqueueing, handing over to the stream's thread, and waiting until all
has run. Exit status 1 if one stream is slower than FLOOR times the single thread at blocks of FLOOR_FROM bytes or more.

Figures are compared only within a run: the contestants take turns, forwards and backwards, so that each finds in the
caches what the others find there; of each the best of its turns counts, since what else a machine does can only slow
them down. On a busy one that is not enough: then the ratio of the processor seconds (`by cpu`), which count the
enqueueing in full, tells what the copies cost.
"""

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from kvoffload.devices.host import Host
from kvoffload.operations import Copy, Stream, Tier

# Imported after kvoffload, which keeps torch from warning about an absent numpy.
import torch  # isort: skip

LAYERS = 4
PAIRS = 8
TURNS = 30
SIZES = (4 << 10, 64 << 10, 256 << 10, 1 << 20)

FLOOR = 0.9
FLOOR_FROM = 64 << 10

STRIDE = 5
"""Between a block and the next one that is copied."""


def scattered(number: int, span: int) -> int:
    """Every block of a span in turn, none beside the one before."""
    return number * STRIDE % span


Contestant = Callable[[], None]
"""Makes all the copies once."""


def one_by_one(to: list[torch.Tensor], of: list[torch.Tensor]) -> Contestant:
    """One thread, and nothing but one `copy_` per layer and block: which blocks is known, and they are at hand."""
    todo = list(zip(to, of, strict=True))

    def copied() -> None:
        for block, source in todo:
            block.copy_(source)

    return copied


def in_one_call(to: list[torch.Tensor], of: list[torch.Tensor]) -> Contestant:
    return lambda: torch._foreach_copy_(to, of)


def plain(host: Host, copies: int) -> tuple[Contestant, Contestant]:
    """The copies of one stream on the device's own memory, by the caller's thread."""
    device, below = [host.tensors(tier, 0).data for tier in (Tier.DEVICE, Tier.HOST)]
    blocks = host.tensors(Tier.HOST, 0).blocks
    places = [
        (layer, scattered(copy * PAIRS + pair, blocks))
        for copy in range(copies)
        for layer in range(LAYERS)
        for pair in range(PAIRS)
    ]
    to, of = [[memory[place] for place in places] for memory in (below, device)]
    return one_by_one(to, of), in_one_call(to, of)


def streams(host: Host, copies: int, *names: Stream) -> Contestant:
    """As many copies, shared out equally between streams of every worker, which each have a part of the blocks."""
    workers = range(host.workers)
    lanes = host.workers * len(names)
    span = host.tensors(Tier.HOST, 0).blocks // len(names)
    jobs: list[Copy] = []
    for copy in range(copies // lanes):
        for place, stream in enumerate(names):
            blocks = [place * span + scattered(copy * PAIRS + pair, span) for pair in range(PAIRS)]
            jobs.append(Copy(len(jobs), stream, tuple([(block, block) for block in blocks]), -1, ()))

    def copied() -> None:
        for job in jobs:
            for worker in workers:
                host.enqueue(worker, job)
        host.drain()
        for worker in workers:
            for done in host.copied(worker):
                host.collect(worker, done)

    return copied


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
    forwards = range(len(contestants))
    for turn in range(TURNS):
        for place in reversed(forwards) if turn % 2 else forwards:
            start, used = time.perf_counter(), time.process_time()
            contestants[place]()
            clock, processor = time.perf_counter() - start, time.process_time() - used
            took[place] = Took(min(took[place].clock, clock), min(took[place].processor, processor))
    return took


def measured(block_bytes: int, blocks: int) -> tuple[Took, Took, Took]:
    """What one thread took, one stream, and four streams of two workers that have half of the blocks each."""
    copies = blocks // PAIRS
    with (
        Host(1, blocks, blocks, layers=LAYERS, block_bytes=block_bytes) as host,
        Host(2, blocks // 2, blocks // 2, layers=LAYERS, block_bytes=block_bytes) as halves,
    ):
        each, whole, one, four = best(
            (
                *plain(host, copies),
                streams(host, copies, Stream.STORE),
                streams(halves, copies, Stream.STORE, Stream.LOAD),
            )
        )
    return Took(min(each.clock, whole.clock), min(each.processor, whole.processor)), one, four


def main(megabytes: int) -> int:
    torch.set_num_threads(1)  # else torch splits large copies by itself, and there is no single thread to compare with
    print(f"GB/s copied, {LAYERS} layers, {PAIRS} blocks per copy, tiers of {megabytes} MB, best of {TURNS} turns")
    print(f"{'block':>9} {'one thread':>11} {'1 stream':>9} {'ratio':>6} {'by cpu':>7} {'4 streams':>10}")
    missed = []
    for block_bytes in SIZES:
        blocks = max(4 * PAIRS, (megabytes << 20) // (LAYERS * block_bytes))
        volume = blocks * LAYERS * block_bytes / 1e9
        thread, one, four = measured(block_bytes, blocks)
        ratio = thread.clock / one.clock
        print(
            f"{block_bytes >> 10:5} KiB {volume / thread.clock:11.2f} {volume / one.clock:9.2f} {ratio:6.2f}"
            f" {thread.processor / one.processor:7.2f} {volume / four.clock:10.2f}",
            flush=True,
        )
        if block_bytes >= FLOOR_FROM and ratio < FLOOR:
            missed.append(f"{block_bytes >> 10} KiB: {ratio:.2f}")
    if missed:
        print(f"below {FLOOR} of one thread: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 128))
