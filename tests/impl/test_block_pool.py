"""Reference counts, the free queue, and what the prefix cache forgets when a block is taken."""

import pickle
from itertools import product

import pytest

from kvoffload.block_pool import BlockPool
from kvoffload.errors import DoubleFree, OutOfBlocks, UnknownBlock


@pytest.fixture
def pool() -> BlockPool:
    return BlockPool.of_size(4)


def test_blocks_are_taken_in_order_of_release_and_a_released_list_leaves_its_head_last(pool: BlockPool) -> None:
    assert pool.take(4) == [0, 1, 2, 3]
    pool.release([2])
    pool.release([0, 1])
    assert list(pool.free_blocks()) == [2, 1, 0]
    assert pool.take(1) == [2]
    assert pool.take(2) == [1, 0]


def test_a_touched_block_leaves_the_middle_of_the_queue_and_keeps_its_key(pool: BlockPool) -> None:
    pool.cache.publish([(2, 70)])
    pool.touch([2])
    assert list(pool.free_blocks()) == [0, 1, 3]
    assert pool.cache.blocks == {70: 2}
    pool.touch([2])
    pool.release([2])
    assert list(pool.free_blocks()) == [0, 1, 3]
    pool.release([2])
    assert list(pool.free_blocks()) == [0, 1, 3, 2]


def test_taking_a_block_evicts_its_key(pool: BlockPool) -> None:
    pool.cache.publish([(0, 70), (1, 71)])
    assert pool.take(1) == [0]
    assert pool.cache.blocks == {71: 1}
    assert pool.cache.run([70, 71]) == []


def test_an_empty_pool_refuses_to_give(pool: BlockPool) -> None:
    pool.take(4)
    with pytest.raises(OutOfBlocks):
        pool.take(1)


def test_blocks_are_taken_all_or_none(pool: BlockPool) -> None:
    pool.take(2)
    before = copy_of(pool)
    with pytest.raises(OutOfBlocks):
        pool.take(3)
    assert copy_of(pool) == before
    assert pool.take(0) == []


def copy_of(pool: BlockPool) -> tuple[list[int], list[int]]:
    return list(pool.counts), list(pool.free_blocks())


def test_a_free_block_cannot_be_released(pool: BlockPool) -> None:
    pool.release(pool.take(1))
    before = copy_of(pool)
    with pytest.raises(DoubleFree):
        pool.release([0])
    assert copy_of(pool) == before


def test_one_reference_cannot_be_released_twice_in_one_call(pool: BlockPool) -> None:
    first, second = pool.take(2)
    before = copy_of(pool)
    with pytest.raises(DoubleFree):
        pool.release([second, first, second])
    assert copy_of(pool) == before
    pool.touch([second])
    pool.release([second, first, second])
    assert pool.free == 4


@pytest.mark.parametrize("block", [-1, 4, 99])
def test_a_block_of_another_pool_is_refused_and_with_it_the_whole_list(pool: BlockPool, block: int) -> None:
    [mine] = pool.take(1)
    before = copy_of(pool)
    with pytest.raises(UnknownBlock):
        pool.release([mine, block])
    with pytest.raises(UnknownBlock):
        pool.touch([mine, block])
    with pytest.raises(UnknownBlock, match=f"block {block} of a pool of 4"):
        pool.claim(block)
    assert copy_of(pool) == before


def test_a_key_is_published_once(pool: BlockPool) -> None:
    pool.cache.publish([(1, 70), (3, 70), (2, 71)])
    assert pool.cache.blocks == {70: 1, 71: 2}
    assert pool.cache.keys == [0, 70, 71, 0]


def test_a_block_that_stands_in_a_list_twice_is_referenced_twice(pool: BlockPool) -> None:
    pool.touch([1, 1])
    assert copy_of(pool) == ([0, 2, 0, 0], [0, 2, 3])


def test_a_refused_release_leaves_every_block_its_place_in_the_queue(pool: BlockPool) -> None:
    pool.touch([3, 1])
    assert copy_of(pool) == ([0, 1, 0, 1], [0, 2])
    with pytest.raises(DoubleFree, match="block 0 is released 1 times and referenced 0 times"):
        pool.release([1, 0, 3])
    assert copy_of(pool) == ([0, 1, 0, 1], [0, 2])


def test_every_short_list_is_released_as_a_whole_or_not_at_all() -> None:
    """Of three blocks with up to two references each: every list of up to four entries, 3,240 in all."""
    released = refused = 0
    for counts in product(range(3), repeat=3):
        for blocks in [each for length in range(1, 5) for each in product(range(3), repeat=length)]:
            pool = BlockPool.of_size(3)
            pool.touch([block for block, count in enumerate(counts) for _ in range(count)])
            queued = list(pool.free_blocks())
            if all(blocks.count(block) <= count for block, count in enumerate(counts)):
                pool.release(blocks)
                left = [count - blocks.count(block) for block, count in enumerate(counts)]
                freed = [block for block in dict.fromkeys(blocks) if not left[block]]
                assert copy_of(pool) == (left, [*queued, *reversed(freed)])
                released += 1
            else:
                with pytest.raises(DoubleFree):
                    pool.release(blocks)
                assert copy_of(pool) == (list(counts), queued)
                refused += 1
    assert (released, refused) == (507, 2733)


def test_a_pool_that_was_pickled_takes_the_same_blocks(pool: BlockPool) -> None:
    pool.touch([1])
    pool.release(pool.take(1))
    pool.cache.publish([(2, 70)])
    restored: BlockPool = pickle.loads(pickle.dumps(pool))
    assert restored == pool
    assert restored.take(3) == [2, 3, 0]
