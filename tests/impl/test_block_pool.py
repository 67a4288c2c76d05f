"""Reference counts, the free queue, and what the prefix cache forgets when a block is taken."""

import pytest

from kvoffload.block_pool import BlockPool
from kvoffload.errors import DoubleFree, OutOfBlocks, UnknownBlock


@pytest.fixture
def pool() -> BlockPool:
    return BlockPool.of_size(4)


def test_blocks_are_taken_in_order_of_release_and_a_released_list_leaves_its_head_last(pool: BlockPool) -> None:
    taken = [pool.take() for _ in range(4)]
    assert taken == [0, 1, 2, 3]
    pool.release([2])
    pool.release([0, 1])
    assert list(pool.free_blocks()) == [2, 1, 0]
    assert [pool.take() for _ in range(3)] == [2, 1, 0]


def test_a_touched_block_leaves_the_middle_of_the_queue_and_keeps_its_key(pool: BlockPool) -> None:
    pool.cache.publish(2, 70)
    pool.touch(2)
    assert list(pool.free_blocks()) == [0, 1, 3]
    assert pool.cache.blocks == {70: 2}
    pool.touch(2)
    pool.release([2])
    assert list(pool.free_blocks()) == [0, 1, 3]
    pool.release([2])
    assert list(pool.free_blocks()) == [0, 1, 3, 2]


def test_taking_a_block_evicts_its_key(pool: BlockPool) -> None:
    pool.cache.publish(0, 70)
    pool.cache.publish(1, 71)
    assert pool.take() == 0
    assert pool.cache.blocks == {71: 1}
    assert pool.cache.run([70, 71]) == []


def test_an_empty_pool_refuses_to_give(pool: BlockPool) -> None:
    for _ in range(4):
        pool.take()
    with pytest.raises(OutOfBlocks):
        pool.take()


def copy_of(pool: BlockPool) -> tuple[list[int], list[int], list[int], int]:
    return list(pool.counts), list(pool.following), list(pool.preceding), pool.free


def test_a_free_block_cannot_be_released(pool: BlockPool) -> None:
    pool.release([pool.take()])
    before = copy_of(pool)
    with pytest.raises(DoubleFree):
        pool.release([0])
    assert copy_of(pool) == before


def test_one_reference_cannot_be_released_twice_in_one_call(pool: BlockPool) -> None:
    first, second = pool.take(), pool.take()
    before = copy_of(pool)
    with pytest.raises(DoubleFree):
        pool.release([second, first, second])
    assert copy_of(pool) == before
    pool.touch(second)
    pool.release([second, first, second])
    assert pool.free == 4


@pytest.mark.parametrize("block", [-1, 4, 99])
def test_a_block_of_another_pool_is_refused_and_with_it_the_whole_list(pool: BlockPool, block: int) -> None:
    mine = pool.take()
    before = copy_of(pool)
    with pytest.raises(UnknownBlock):
        pool.release([mine, block])
    with pytest.raises(UnknownBlock):
        pool.touch(block)
    assert copy_of(pool) == before


def test_a_key_is_published_once(pool: BlockPool) -> None:
    assert pool.cache.publish(1, 70)
    assert not pool.cache.publish(3, 70)
    assert pool.cache.blocks == {70: 1}
    assert pool.cache.keys == [0, 70, 0, 0]


def test_links_of_a_referenced_block_say_nothing(pool: BlockPool) -> None:
    other = BlockPool.of_size(4)
    pool.take()
    pool.touch(3)
    other.touch(3)
    other.touch(0)
    assert copy_of(pool) == copy_of(other)
