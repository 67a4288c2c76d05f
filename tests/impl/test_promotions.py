"""Which blocks of the second tier are brought back: a prefix of the prompt, never at the cost of an earlier part."""

from kvoffload import promotions
from kvoffload.block_pool import BlockPool
from kvoffload.ids import Pair

A, B, C = 1, 2, 3


def holding(size: int, *keys: int) -> BlockPool:
    """A pool of free blocks of which the first ones serve these keys."""
    pool = BlockPool.of_size(size)
    pool.cache.publish(enumerate(keys))
    return pool


def test_what_the_host_has_is_not_brought_back() -> None:
    assert promotions.choose((A, B, C), holding(3, A), holding(3, C, B), ()) == (Pair(1, 1, B), Pair(0, 2, C))


def test_it_ends_at_the_first_key_that_nobody_has() -> None:
    assert promotions.choose((A, B, C), holding(3), holding(3, A, C), ()) == (Pair(0, 0, A),)


def test_a_key_on_its_way_to_the_host_is_nobodys_yet() -> None:
    assert promotions.choose((A, B), holding(2), holding(2, A, B), {B}) == (Pair(0, 0, A),)


def test_a_block_that_serves_an_earlier_key_is_not_evicted() -> None:
    assert promotions.choose((A, B), holding(1, A), holding(1, B), ()) == ()
    assert promotions.choose((A, B), holding(2, A), holding(1, B), ()) == (Pair(0, 1, B),)


def test_a_block_that_serves_a_later_key_is_and_that_key_is_brought_back_too() -> None:
    assert promotions.choose((A, B), holding(2, B), holding(2, A, B), ()) == (Pair(0, 0, A), Pair(1, 1, B))
    assert promotions.choose((A, B), holding(1, B), holding(2, A, B), ()) == (Pair(0, 0, A),)


def test_a_key_that_stands_twice_is_brought_back_once() -> None:
    assert promotions.choose((A, A, B), holding(3), holding(2, A, B), ()) == (Pair(0, 0, A), Pair(1, 1, B))


def test_a_referenced_block_is_no_destination() -> None:
    host = holding(2)
    host.touch([0])
    assert promotions.choose((A, B), host, holding(2, A, B), ()) == (Pair(0, 1, A),)
