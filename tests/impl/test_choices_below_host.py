"""Which blocks go from the host down to the second tier, and which of that come back."""

from kvoffload import promotions
from kvoffload.block_pool import BlockPool
from kvoffload.ids import Pair
from kvoffload.stores import cascade

A, B, C = 1, 2, 3


def holding(size: int, *keys: int) -> BlockPool:
    """A pool of free blocks of which the first ones serve these keys."""
    pool = BlockPool.of_size(size)
    pool.cache.publish(enumerate(keys))
    return pool


# Down.


def test_what_the_second_tier_has_does_not_go_down_again() -> None:
    second = holding(2, A)
    second.touch([0])
    assert cascade.choose(holding(3, A, B), second) == (Pair(1, 1, B),)


def test_what_serves_nothing_does_not_go_down() -> None:
    host = holding(3, A, B)
    host.cache.evict([0])
    assert cascade.choose(host, holding(2)) == (Pair(1, 0, B),)


def test_what_is_held_on_the_host_stays_there() -> None:
    host = holding(2, A, B)
    host.touch([0])
    assert cascade.choose(host, holding(2)) == (Pair(1, 0, B),)


def test_it_goes_down_as_far_as_there_is_room() -> None:
    second = holding(2)
    second.touch([1])
    assert cascade.choose(holding(2, A, B), second) == (Pair(0, 0, A),)
    second.touch([0])
    assert cascade.choose(holding(2, A, B), second) == ()


def test_it_ends_at_what_would_have_to_come_down_again() -> None:
    assert cascade.choose(holding(2, A, B), holding(1, B)) == ()


# Up.


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
