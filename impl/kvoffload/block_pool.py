"""Reference counts and the free queue of one tier's blocks."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from kvoffload.cache_events import Journal
from kvoffload.errors import DoubleFree, OutOfBlocks, UnknownBlock
from kvoffload.ids import Block
from kvoffload.plain import Plain
from kvoffload.prefix_cache import PrefixCache


@dataclass(slots=True)
class BlockPool(Plain):
    """Blocks 0 .. size-1, each with a count of references; those without any are queued in the order of eviction.

    The queue is an OrderedDict without values: a cached block leaves its middle in O(1), and that is done in C. (In a
    plain dict, each block that is taken would be searched for behind those taken before it.) Every operation is one for
    many blocks, since in Python a call costs as much as the work on a block.

    counts     references held on each block
    queue      free blocks, the next to be evicted first
    cache      what can be found in the blocks; a free block keeps its key until it is taken
    """

    counts: list[int]
    queue: OrderedDict[Block, None]
    cache: PrefixCache

    @classmethod
    def of_size(cls, size: int, journal: Journal | None = None) -> "BlockPool":
        """A pool of free blocks, queued 0, 1, 2, ... Its cache writes into the journal, if there is one."""
        return cls([0] * size, OrderedDict.fromkeys(range(size)), PrefixCache.empty(size, journal))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The queue as a list, which pickles several times as fast."""
        return _restored, (type(self), self.counts, list(self.queue), self.cache)

    @property
    def size(self) -> int:
        return len(self.counts)

    @property
    def free(self) -> int:
        """Blocks without references (count)."""
        return len(self.queue)

    def free_blocks(self) -> Iterator[Block]:
        """Blocks without references, the next to be evicted first. The pool must not change meanwhile."""
        return iter(self.queue)

    def take(self, blocks: int) -> list[Block]:
        """Evict and return so many blocks from the eviction end, each with one reference.

        OutOfBlocks if fewer are free: then none is taken.
        """
        queue, counts = self.queue, self.counts
        if blocks > len(queue):
            raise OutOfBlocks(f"{blocks} blocks of {len(counts)}, of which {len(queue)} are free")
        taken = list(islice(queue, blocks))
        for block in taken:
            del queue[block]
            counts[block] = 1
        self.cache.evict(taken)
        return taken

    def claim(self, block: Block) -> None:
        """Evict this free block, wherever it is queued, and reference it.

        UnknownBlock if there is no such block, OutOfBlocks if it is referenced: then nothing has changed.
        """
        self._know((block,))
        if self.counts[block]:
            raise OutOfBlocks(f"block {block} is referenced")
        del self.queue[block]
        self.counts[block] = 1
        self.cache.evict([block])

    def touch(self, blocks: Sequence[Block]) -> None:
        """Add one reference for each entry; the blocks keep their keys. UnknownBlock if there is no such block: then
        nothing has changed."""
        self._know(blocks)
        queue, counts = self.queue, self.counts
        for block in blocks:
            if not counts[block]:
                del queue[block]
            counts[block] += 1

    def release(self, blocks: Sequence[Block]) -> None:
        """Drop one reference for each entry, from the last to the first.

        That order makes a prefix outlive its extensions: a block is of no use once one before it is evicted.
        UnknownBlock if there is no such block; DoubleFree if a block has fewer references than entries. Then nothing
        has changed.
        """
        self._know(blocks)
        queue, counts = self.queue, self.counts
        refused = False
        for block in reversed(blocks):
            left = counts[block] - 1
            counts[block] = left
            if not left:
                queue[block] = None
            elif left < 0:
                refused = True
        if refused:
            self._take_back(blocks)

    def _know(self, blocks: Sequence[Block]) -> None:
        known = _blocks(len(self.counts))
        if not known.issuperset(blocks):
            unknown = next(block for block in blocks if block not in known)
            raise UnknownBlock(f"block {unknown} of a pool of {len(self.counts)}")

    def _take_back(self, released: Sequence[Block]) -> None:
        """Undo a release that went below zero, and raise DoubleFree. What it appended to the queue leaves it again; a
        block that was free before kept its place, since its count never came down to zero."""
        twice = next(block for block in released if self.counts[block] < 0)
        for block in released:
            self.counts[block] += 1
            if self.counts[block] == 1:
                del self.queue[block]
        raise DoubleFree(
            f"block {twice} is released {released.count(twice)} times and referenced {self.counts[twice]} times"
        )


@cache
def _blocks(size: int) -> frozenset[Block]:
    """The blocks of a pool: a whole list is compared with them in one call, at half of what two bounds cost."""
    return frozenset(range(size))


def _restored(kind: type[BlockPool], counts: list[int], queued: Sequence[Block], cache: PrefixCache) -> BlockPool:
    return kind(counts, OrderedDict.fromkeys(queued), cache)
