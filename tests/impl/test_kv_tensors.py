"""Blocks as bytes: what is written decodes to what was meant, and nothing else decodes at all."""

import hashlib
import itertools
import struct
import subprocess
import sys

import pytest

from kvoffload import kv_tensors
from kvoffload.errors import UnknownBlock
from kvoffload.kv_tensors import KVTensors, Pattern
from kvoffload.operations import Content, Unreadable

EXTREMES = (0, 1, -1, 2**31, 2**32 + 7, 2**63 - 1, -(2**63))
LAYERS = 3
BLOCK_BYTES = 64


def tensors(worker: int = 0, blocks: int = 4) -> KVTensors:
    return KVTensors(Pattern(worker, LAYERS, BLOCK_BYTES), blocks)


def raw(of: KVTensors, block: int) -> bytes:
    return b"".join(struct.pack("<q", word) for layer in of.data[:, block].tolist() for word in layer)


def reference(content: Content, worker: int) -> bytes:
    """The format, written a second time in plain Python."""
    mask = 2**64 - 1
    block = b""
    for layer in range(LAYERS):
        seeded = struct.pack("<qqqq", content.key, content.generation, worker, layer)
        state = int.from_bytes(hashlib.blake2b(seeded, digest_size=8).digest(), "little")
        block += struct.pack("<Qqq", 0x6B766F66666C6F61, *content)
        for _ in range(BLOCK_BYTES // 8 - 3):
            word = state
            word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & mask
            word = (word ^ (word >> 27)) * 0x94D049BB133111EB & mask
            block += struct.pack("<Q", word ^ (word >> 31))
            state = (state + 0x9E3779B97F4A7C15) & mask
    return block


@pytest.mark.parametrize("worker", [0, 1, 7])
def test_extreme_contents_round_trip(worker: int) -> None:
    kv = tensors(worker)
    for content in itertools.starmap(Content, itertools.product(EXTREMES, EXTREMES)):
        kv.fill(2, content)
        assert kv.decode(2) == content
        assert raw(kv, 2) == reference(content, worker)


def test_many_keys_round_trip_and_leave_the_other_blocks_alone() -> None:
    kv = tensors(blocks=500)
    for block in range(500):
        kv.fill(block, Content(block * block, block % 3))
    assert [kv.decode(block) for block in range(500)] == [Content(block * block, block % 3) for block in range(500)]
    assert len({raw(kv, block) for block in range(500)}) == 500


def test_the_smallest_block_and_one_layer_suffice() -> None:
    kv = KVTensors(Pattern(0, 1, 32), 1)
    kv.fill(0, Content(5, 1))
    assert kv.decode(0) == Content(5, 1)
    kv.data[0, 0, 3] += 1
    assert kv.decode(0) is Unreadable.TORN


def test_a_fresh_block_is_unwritten() -> None:
    kv = tensors()
    assert [kv.decode(block) for block in range(4)] == [Unreadable.UNWRITTEN] * 4


@pytest.mark.parametrize("content", [Content(0, 0), Content(9, 2)])
def test_every_single_bit_counts(content: Content) -> None:
    kv = tensors()
    kv.fill(1, content)
    for layer, word, bit in itertools.product(range(LAYERS), range(BLOCK_BYTES // 8), range(64)):
        flip = -(2**63) if bit == 63 else 1 << bit
        kv.data[layer, 1, word] ^= flip
        assert kv.decode(1) is Unreadable.TORN, (layer, word, bit)
        kv.data[layer, 1, word] ^= flip
    assert kv.decode(1) == content


@pytest.mark.parametrize("layer", range(LAYERS))
def test_a_single_byte_in_an_unwritten_block_makes_it_torn(layer: int) -> None:
    kv = tensors()
    kv.data[layer, 1, BLOCK_BYTES // 8 - 1] = 1 << 56
    assert kv.decode(1) is Unreadable.TORN
    assert kv.decode(0) is Unreadable.UNWRITTEN


@pytest.mark.parametrize("other", [Content(2, 0), Content(1, 1)])
@pytest.mark.parametrize("layer", range(LAYERS))
def test_one_layer_of_another_content_is_torn(layer: int, other: Content) -> None:
    kv, elsewhere = tensors(), tensors()
    kv.fill(0, Content(1, 0))
    elsewhere.fill(3, other)
    kv.copy(elsewhere, [(3, 0)], [layer])
    assert kv.decode(0) is Unreadable.TORN


def test_a_copy_is_torn_until_its_last_layer() -> None:
    source, destination = tensors(), tensors()
    source.fill(0, Content(1, 0))
    for order in itertools.permutations(range(LAYERS)):
        destination.data.zero_()
        for layer in order[:-1]:
            destination.copy(source, [(0, 3)], [layer])
            assert destination.decode(3) is Unreadable.TORN
        destination.copy(source, [(0, 3)], [order[-1]])
        assert destination.decode(3) == Content(1, 0)


def test_exchanged_layers_are_torn() -> None:
    kv = tensors()
    kv.fill(0, Content(1, 0))
    kv.data[:2, 0] = kv.data[:2, 0].flip(0)
    assert kv.decode(0) is Unreadable.TORN


def test_the_bytes_of_another_worker_are_torn() -> None:
    mine, theirs = tensors(0), tensors(1)
    theirs.fill(0, Content(1, 0))
    mine.data.copy_(theirs.data)
    assert theirs.decode(0) == Content(1, 0)
    assert mine.decode(0) is Unreadable.TORN


def test_contents_are_right_when_none_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_tensors, "REMEMBERED_BYTES", 1)
    kv = tensors()
    for block in range(4):
        kv.fill(block, Content(block, 0))
    assert [kv.decode(block) for block in (3, 0, 2, 1)] == [Content(block, 0) for block in (3, 0, 2, 1)]


@pytest.mark.parametrize("block", [-1, 4])
def test_blocks_outside_are_refused(block: int) -> None:
    kv = tensors()
    with pytest.raises(UnknownBlock):
        kv.fill(block, Content(1, 0))
    with pytest.raises(UnknownBlock):
        kv.decode(block)
    assert not kv.data.any()


@pytest.mark.parametrize(("layers", "block_bytes"), [(0, 64), (1, 0), (1, 24), (1, 63), (1, -64)])
def test_sizes_that_hold_no_content_are_refused(layers: int, block_bytes: int) -> None:
    with pytest.raises(ValueError, match="cannot hold a content"):
        Pattern(0, layers, block_bytes)


@pytest.mark.parametrize("content", [Content(2**63, 0), Content(0, -(2**63) - 1)])
def test_numbers_beyond_a_word_are_refused_and_write_nothing(content: Content) -> None:
    kv = tensors()
    with pytest.raises(ValueError, match="64-bit"):
        kv.fill(0, content)
    assert not kv.data.any()


def test_only_the_tensors_need_torch() -> None:
    modules = "kvoffload, kvoffload.operations, kvoffload.errors, kvoffload.devices.device"
    program = f"import sys; import {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
