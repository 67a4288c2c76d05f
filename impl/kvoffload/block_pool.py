"""Reference counts and the free queue of one tier's blocks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvoffload.cache_events import Journal
from kvoffload.errors import DoubleFree, OutOfBlocks, UnknownBlock
from kvoffload.ids import Block
from kvoffload.plain import Plain
from kvoffload.prefix_cache import PrefixCache

_UNLINKED = -1


@dataclass(slots=True)
class BlockPool(Plain):
    """Blocks 0 .. size-1, each with a count of references; those without any are queued in the order of eviction.

    The queue is a doubly linked list through two flat lists, so that a cached block can leave its middle in O(1);
    index `size` is the sentinel that closes the ring. Links of a block that is not queued are -1.

    counts     references held on each block
    following, preceding   links of the queue, with the sentinel's at index `size`
    free       length of the queue (count)
    cache      what can be found in the blocks; a free block keeps its key until it is taken
    """

    counts: list[int]
    following: list[int]
    preceding: list[int]
    free: int
    cache: PrefixCache

    @classmethod
    def of_size(cls, size: int, journal: Journal | None = None) -> "BlockPool":
        """A pool of free blocks, queued 0, 1, 2, ... Its cache writes into the journal, if there is one."""
        ring = range(size + 1)
        return cls(
            counts=[0] * size,
            following=[(index + 1) % (size + 1) for index in ring],
            preceding=[(index - 1) % (size + 1) for index in ring],
            free=size,
            cache=PrefixCache.empty(size, journal),
        )

    @property
    def size(self) -> int:
        return len(self.counts)

    def free_blocks(self) -> Iterator[Block]:
        """Blocks without references, the next to be evicted first. The pool must not change meanwhile."""
        end = len(self.counts)
        following = self.following
        block = following[end]
        while block != end:
            yield block
            block = following[block]

    def take(self) -> Block:
        """Evict and return the block at the eviction end, with one reference. OutOfBlocks if all are referenced."""
        if not self.free:
            raise OutOfBlocks(f"all {len(self.counts)} blocks are referenced")
        block = self.following[len(self.counts)]
        self._unlink(block)
        self.cache.evict(block)
        self.counts[block] = 1
        return block

    def touch(self, block: Block) -> None:
        """Add one reference to a block; it keeps its key. UnknownBlock if there is no such block."""
        if not 0 <= block < len(self.counts):
            raise UnknownBlock(f"block {block} of a pool of {len(self.counts)}")
        if not self.counts[block]:
            self._unlink(block)
        self.counts[block] += 1

    def release(self, blocks: Sequence[Block]) -> None:
        """Drop one reference for each entry, from the last to the first.

        That order makes a prefix outlive its extensions: a block is of no use once one before it is evicted. The list
        is validated whole before anything changes. UnknownBlock if there is no such block; DoubleFree if a block has
        fewer references than entries.
        """
        counts = self.counts
        size = len(counts)
        for block in blocks:
            if not 0 <= block < size:
                raise UnknownBlock(f"block {block} of a pool of {size}")
            if not counts[block]:
                raise DoubleFree(f"block {block} has no reference to release")
        if len(set(blocks)) < len(blocks):
            for block, times in Counter(blocks).items():
                if times > counts[block]:
                    raise DoubleFree(f"block {block} is released {times} times and referenced {counts[block]} times")
        for block in reversed(blocks):
            counts[block] -= 1
            if not counts[block]:
                self._append(block)

    def _unlink(self, block: Block) -> None:
        after, before = self.following[block], self.preceding[block]
        self.following[before] = after
        self.preceding[after] = before
        self.following[block] = self.preceding[block] = _UNLINKED
        self.free -= 1

    def _append(self, block: Block) -> None:
        end = len(self.counts)
        last = self.preceding[end]
        self.following[last] = block
        self.preceding[block] = last
        self.following[block] = end
        self.preceding[end] = block
        self.free += 1
