"""Operations of the block pool beside a pool of lists and dicts, written plainly: a ratio, measured in one run.

    python bench/block_pool.py [requests per turn, default 300]

Both serve the same requests: each touches the blocks of the longest prefix that is cached, takes the rest (evicting),
publishes their keys, and releases the whole table when some later requests have come. Half of the requests begin like
an earlier one. Both choose the same blocks, which is checked. Exit status 1 if the pool is not FLOOR times as fast as
the plain one at every size.

The plain pool keeps its free queue in a list: a hit leaves the middle of it by `remove`, which looks for it. It checks
less than ours: neither that blocks are in the pool, nor that a list with an error in it leaves everything as it was.

Figures are processor seconds, compared only within a run: the contestants take turns, and the best turn of each counts.
"""

import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from kvoffload.block_pool import BlockPool

SIZES = (1_000, 10_000, 100_000)
TURNS = 7
FLOOR = 2.0

Request = tuple[int, ...]
"""Keys of its blocks."""


class Pool(Protocol):
    """All calls are for many blocks at once, for every contestant."""

    def hits(self, keys: Request) -> Sequence[int]: ...

    def touch(self, blocks: Sequence[int]) -> None: ...

    def take(self, blocks: int) -> list[int]: ...

    def publish(self, contents: Iterable[tuple[int, int]]) -> None: ...

    def release(self, blocks: Sequence[int]) -> None: ...


class Ours:
    def __init__(self, size: int) -> None:
        pool = BlockPool.of_size(size)
        self.hits, self.publish = pool.cache.run, pool.cache.publish
        self.touch, self.take, self.release = pool.touch, pool.take, pool.release


class Plain:
    """Reference counts and keys in lists, the map from keys in a dict, the free queue in a list."""

    def __init__(self, size: int) -> None:
        self.refs = [0] * size
        self.keys = [0] * size
        self.blocks: dict[int, int] = {}
        self.free = list(range(size))

    def hits(self, keys: Request) -> list[int]:
        found = []
        for key in keys:
            if key not in self.blocks:
                break
            found.append(self.blocks[key])
        return found

    def touch(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if self.refs[block] == 0:
                self.free.remove(block)
            self.refs[block] += 1

    def take(self, blocks: int) -> list[int]:
        taken = []
        for _ in range(blocks):
            if not self.free:
                raise RuntimeError("all blocks are referenced")
            block = self.free.pop(0)
            key = self.keys[block]
            if key:
                del self.blocks[key]
                self.keys[block] = 0
            self.refs[block] = 1
            taken.append(block)
        return taken

    def publish(self, contents: Iterable[tuple[int, int]]) -> None:
        for block, key in contents:
            if key not in self.blocks:
                self.blocks[key] = block
                self.keys[block] = key

    def release(self, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            if self.refs[block] == 0:
                raise RuntimeError(f"block {block} is freed twice")
            self.refs[block] -= 1
            if self.refs[block] == 0:
                self.free.append(block)


def requests(size: int, count: int) -> list[Request]:
    """Prompts of some blocks each, more of them than fit at once, half of them with the beginning of an earlier one."""
    chance = random.Random(size)
    longest = min(64, size // 8)
    made: list[Request] = []
    key = 1
    for _ in range(count):
        length = chance.randint(longest // 4, longest)
        shared: Request = ()
        if made and chance.random() < 0.5:
            earlier = made[-chance.randint(1, min(len(made), 100))]
            shared = earlier[: chance.randint(1, len(earlier))][:length]
        fresh = length - len(shared)
        made.append((*shared, *range(key, key + fresh)))
        key += fresh
    return made


def served(pool: Pool, todo: Sequence[Request], active: int) -> Iterator[int]:
    """Serves them; `active` of them hold their tables at once. Yields how many blocks of each were hits."""
    held: list[list[int]] = []
    for keys in todo:
        if len(held) == active:
            done = held.pop(0)
            pool.release(done)
        found = pool.hits(keys)
        hits = len(found)
        pool.touch(found)
        fresh = pool.take(len(keys) - hits)
        pool.publish(zip(fresh, keys[hits:], strict=True))
        held.append([*found, *fresh])
        yield hits
    for table in held:
        pool.release(table)


def warm(pool: Pool, size: int) -> None:
    """Every block has held something, and was freed in an order that has nothing to do with its number."""
    blocks = pool.take(size)
    pool.publish(zip(blocks, range(-1, -1 - size, -1), strict=True))
    random.Random(0).shuffle(blocks)
    pool.release(blocks)


def main(count: int) -> int:
    kinds: tuple[type[Ours] | type[Plain], ...] = (Ours, Plain)
    print(
        f"processor microseconds an operation (touch, take, publish, release), {count} requests, best of {TURNS} turns"
    )
    print(f"{'blocks':>8} {'hits':>5} {'ours':>7} {'plain':>8} {'ratio':>7}")
    missed = []
    for size in SIZES:
        todo = requests(size, count)
        took = [float("inf")] * len(kinds)
        blocks = sum([len(keys) for keys in todo])
        hits = 0
        for _ in range(TURNS):
            chosen = set()
            for place, kind in enumerate(kinds):
                pool: Pool = kind(size)
                warm(pool, size)
                start = time.process_time()
                hits = sum(served(pool, todo, active=4))
                took[place] = min(took[place], time.process_time() - start)
                chosen.add(tuple(pool.hits(todo[-1])))
            assert len(chosen) == 1, "the pools chose different blocks"
        operations = hits + 3 * blocks
        ours, plain = (seconds / operations * 1e6 for seconds in took)
        print(f"{size:8} {hits / blocks:5.0%} {ours:7.3f} {plain:8.3f} {plain / ours:7.2f}", flush=True)
        if plain / ours < FLOOR:
            missed.append(f"{size} blocks: {plain / ours:.2f}")
    if missed:
        print(f"below {FLOOR} times the plain pool: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
