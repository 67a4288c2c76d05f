"""KV blocks as real bytes: what a block's bytes are for a content, and which content given bytes stand for.

A block of one layer is `block_bytes` long and is handled as 64-bit words:

    word 0   MAGIC, so that no content is ever all zero bytes
    word 1   the key
    word 2   the generation
    rest     SplitMix64, seeded with the BLAKE2b hash of key, generation, worker and layer

The first three words make a block decodable without being told what it should hold; the rest makes it checkable. Every
byte of every layer takes part: a block that was copied in part, from two contents, from another worker or with its
layers exchanged is TORN.
"""

import struct
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from kvoffload.errors import UnknownBlock
from kvoffload.operations import Content, Unreadable

with warnings.catch_warnings():
    # Torch warns on import where there is no numpy. Nothing here needs it, and nobody should have to read about it.
    # Other modules have torch from here, so that it is never imported without this.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    import torch as torch
    from torch import Tensor as Tensor

MAGIC: Final = 0x6B766F66666C6F61
"""The first word of every written block ("kvoffloa")."""

WORD_BYTES: Final = 8
HEADER_WORDS: Final = 3
REMEMBERED_BYTES: Final = 8 << 20
"""How much memory a `Pattern` may spend on remembering blocks that it has made."""


def _signed(word: int) -> int:
    """The 64-bit word as torch's int64 holds it; torch has no arithmetic on unsigned words."""
    return word - (1 << 64) if word >> 63 else word


_GOLDEN: Final = _signed(0x9E3779B97F4A7C15)
_FIRST: Final = _signed(0xBF58476D1CE4E5B9)
_SECOND: Final = _signed(0x94D049BB133111EB)


def _mix(words: Tensor) -> Tensor:
    """SplitMix64's output function. Torch shifts int64 arithmetically, hence the masks."""
    words = (words ^ ((words >> 30) & ((1 << 34) - 1))) * _FIRST
    words = (words ^ ((words >> 27) & ((1 << 37) - 1))) * _SECOND
    return words ^ ((words >> 31) & ((1 << 33) - 1))


class Pattern:
    """The bytes of every content on one worker. Safe to use from several threads."""

    def __init__(self, worker: int, layers: int, block_bytes: int) -> None:
        """block_bytes  bytes of one block in one layer: a multiple of 8, at least 32 (a header and one word)

        Raises ValueError for sizes that cannot hold a content.
        """
        words, rest = divmod(block_bytes, WORD_BYTES)
        if layers < 1 or rest or words <= HEADER_WORDS:
            raise ValueError(f"{layers} layers of {block_bytes} bytes cannot hold a content")
        self.worker = worker
        self.layers = layers
        self.words = words
        self._steps = torch.arange(words - HEADER_WORDS, dtype=torch.int64) * _GOLDEN
        self._of = lru_cache(maxsize=max(1, REMEMBERED_BYTES // (layers * block_bytes)))(self._make)

    def of(self, content: Content) -> Tensor:
        """The words of a block with this content, layers x words. Shared: not to be written.

        Raises ValueError if key or generation is no signed 64-bit integer.
        """
        return self._of(content)

    def read(self, block: Tensor) -> Content | Unreadable:
        """What a block's words (layers x words) stand for. All zero is UNWRITTEN, all else that is no content TORN."""
        magic, key, generation = block[0, :HEADER_WORDS].tolist()
        if magic == MAGIC:
            content = Content(key, generation)
            return content if torch.equal(block, self.of(content)) else Unreadable.TORN
        return Unreadable.TORN if block.any() else Unreadable.UNWRITTEN

    def _make(self, content: Content) -> Tensor:
        try:
            seeds = [self._seed(content, layer) for layer in range(self.layers)]
        except struct.error as error:
            raise ValueError(f"{content} does not fit into 64-bit words") from error
        header = torch.tensor((MAGIC, *content), dtype=torch.int64)
        body = _mix(torch.tensor(seeds, dtype=torch.int64).unsqueeze(1) + self._steps)
        return torch.cat((header.expand(self.layers, HEADER_WORDS), body), dim=1)

    def _seed(self, content: Content, layer: int) -> int:
        data = struct.pack("<4q", content.key, content.generation, self.worker, layer)
        return int.from_bytes(blake2b(data, digest_size=WORD_BYTES).digest(), "little", signed=True)


class _Layer(dict[int, Tensor]):
    """Views of one layer's blocks, each made when it is first asked for, and kept: making both of a copy takes more
    than half as long as copying 64 KiB out of a cache does."""

    def __init__(self, whole: Tensor) -> None:
        super().__init__()
        self.whole = whole

    def __missing__(self, block: int) -> Tensor:
        view = self[block] = self.whole[block]
        return view


class KVTensors:
    """One worker's blocks of one tier: layers x blocks x block bytes, unwritten (all zero) at first.

    `data` holds the words, int64, of shape (layers, blocks, words). Concurrent use is safe as far as the blocks differ.
    """

    def __init__(self, pattern: Pattern, blocks: int, data: Tensor | None = None) -> None:
        """data  memory to use, of this shape; None: new memory"""
        self.pattern = pattern
        self.blocks = blocks
        shape = (pattern.layers, blocks, pattern.words)
        self.data = torch.zeros(shape, dtype=torch.int64) if data is None else data
        self._layers = [_Layer(layer) for layer in self.data.unbind(0)]

    def check(self, block: int) -> None:
        """Raises UnknownBlock for a block outside of this tier (torch would take -1 for the last one)."""
        if not 0 <= block < self.blocks:
            raise UnknownBlock(f"block {block} of {self.blocks}")

    def fill(self, block: int, content: Content) -> None:
        """Write the bytes of this content, for the pattern's worker, into every layer.

        Raises UnknownBlock; ValueError as `Pattern.of`.
        """
        self.check(block)
        self.data[:, block].copy_(self.pattern.of(content))

    def blank(self) -> None:
        """Every block is UNWRITTEN again."""
        self.data.zero_()

    def decode(self, block: int) -> Content | Unreadable:
        """What the block holds, compared byte by byte in every layer. Raises UnknownBlock."""
        self.check(block)
        return self.pattern.read(self.data[:, block])

    def break_off(self, block: int) -> None:
        """What a copy that fails midway leaves: some words of one layer are written, and stand for nothing."""
        self._layers[0][block][:HEADER_WORDS].fill_(-1)

    def copy(self, source: "KVTensors", pairs: Sequence[tuple[int, int]], layers: Iterable[int] | None = None) -> None:
        """Copy blocks from another tier, layer by layer (None: all layers): each pair is (source block, block here).

        The blocks are not checked: whoever made the copy did. RuntimeError, which is torch's, if one of the copies
        fails; those before it are made then.
        """
        if not pairs:
            return
        sources, blocks = zip(*pairs, strict=True)
        to: list[Tensor] = []
        of: list[Tensor] = []
        for layer in range(self.pattern.layers) if layers is None else layers:
            here, there = self._layers[layer], source._layers[layer]
            to += map(here.__getitem__, blocks)
            of += map(there.__getitem__, sources)
        # One call for all of them: at 64 KiB, calling from here for each takes a third as long as copying it.
        torch._foreach_copy_(to, of)  # pyright: ignore[reportPrivateImportUsage] # there is no public name for it
