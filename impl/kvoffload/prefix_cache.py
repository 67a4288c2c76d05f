"""Which content can be found in which block of one pool."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvoffload.cache_events import Journal
from kvoffload.ids import NO_KEY, Block, Key
from kvoffload.plain import Plain


@dataclass(slots=True)
class PrefixCache(Plain):
    """A one-to-one map between keys and the blocks that hold them; `keys` is its inverse, NO_KEY where none.

    journal  is told of every key that can be found from now on, or no longer; None: nobody wants to know
    """

    keys: list[Key]
    blocks: dict[Key, Block]
    journal: Journal | None = None

    @classmethod
    def empty(cls, size: int, journal: Journal | None = None) -> "PrefixCache":
        return cls([NO_KEY] * size, {}, journal)

    def publish(self, contents: Iterable[tuple[Block, Key]]) -> None:
        """Let each key be found in its block, unless it already is in some block: then nothing happens to either."""
        keys, blocks, journal = self.keys, self.blocks, self.journal
        for block, key in contents:
            if key in blocks:
                continue
            if keys[block] != NO_KEY:
                self.evict((block,))
            keys[block] = key
            blocks[key] = block
            if journal is not None:
                journal.stored(key)

    def evict(self, evicted: Iterable[Block]) -> None:
        """These blocks no longer serve their keys, where they had any."""
        keys, blocks, journal = self.keys, self.blocks, self.journal
        for block in evicted:
            key = keys[block]
            if key != NO_KEY:
                keys[block] = NO_KEY
                del blocks[key]
                if journal is not None:
                    journal.removed(key)

    def withdraw(self, block: Block, key: Key) -> None:
        """`key` is not found in `block` any more; nothing happens if the block does not serve it."""
        if self.keys[block] == key:
            self.evict((block,))

    def clear(self) -> None:
        """No block serves anything; what blocks hold is not touched."""
        self.keys[:] = [NO_KEY] * len(self.keys)
        self.blocks.clear()
        if self.journal is not None:
            self.journal.cleared()

    def run(self, keys: Sequence[Key], start: int = 0) -> list[Block]:
        """Blocks of the longest run of `keys` from index `start` on that is cached."""
        found: list[Block] = []
        blocks = self.blocks
        for index in range(start, len(keys)):
            block = blocks.get(keys[index])
            if block is None:
                break
            found.append(block)
        return found
