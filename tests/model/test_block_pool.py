"""The pool: blocks are taken least recently used first, keep their keys while free, and are never freed twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel import Forbidden
from kvmodel.block_pool import Pool, empty_pool, release, take, touch
from kvmodel.prefix_cache import cleared, is_cached, longest_hit, publish


def taken(pool: Pool, times: int) -> Pool:
    for _ in range(times):
        _, pool = take(pool)
    return pool


def test_an_empty_pool_is_free_and_caches_nothing() -> None:
    assert empty_pool(3) == Pool(refs=(0, 0, 0), keys=(0, 0, 0), free=(0, 1, 2))


def test_taking_evicts_the_least_recently_used_block() -> None:
    pool = Pool(refs=(0, 0, 1), keys=(7, 8, 9), free=(1, 0))
    block, pool = take(pool)
    assert block == 1
    assert pool == Pool(refs=(0, 1, 1), keys=(7, 0, 9), free=(0,))


def test_a_named_block_is_taken_from_the_middle_of_the_queue() -> None:
    block, pool = take(empty_pool(3), 1)
    assert block == 1
    assert pool.free == (0, 2)


def test_nothing_is_taken_from_a_full_pool() -> None:
    with pytest.raises(Forbidden, match="none free") as refused:
        take(taken(empty_pool(2), 2))
    assert refused.value.rule == "free-means-unowned"


def test_a_held_block_is_not_taken() -> None:
    with pytest.raises(Forbidden, match="while it has references") as refused:
        take(taken(empty_pool(2), 1), 0)
    assert refused.value.rule == "pinned-is-not-evicted"


def test_touching_a_free_cached_block_takes_it_out_of_the_queue_and_keeps_its_key() -> None:
    pool = touch(Pool(refs=(0, 0), keys=(7, 0), free=(0, 1)), (0,))
    assert pool == Pool(refs=(1, 0), keys=(7, 0), free=(1,))
    assert touch(pool, (0,)).refs == (2, 0)
    assert touch(pool, ()) is pool


def test_releasing_goes_from_the_last_to_the_first() -> None:
    """So that a prefix is evicted after its extensions."""
    pool = release(taken(empty_pool(3), 3), (0, 1, 2))
    assert pool.free == (2, 1, 0)


def test_a_block_with_two_references_is_not_free_after_one_release() -> None:
    pool = touch(taken(empty_pool(1), 1), (0,))
    assert release(pool, (0,)) == Pool(refs=(1,), keys=(0,), free=())
    assert release(pool, (0, 0)) == Pool(refs=(0,), keys=(0,), free=(0,))


def test_a_double_free_is_refused() -> None:
    with pytest.raises(Forbidden, match="block 0 is released although it has no references") as refused:
        release(empty_pool(1), (0,))
    assert refused.value.rule == "no-double-free"


@given(st.data())
def test_the_queue_holds_exactly_the_unreferenced_blocks_each_once(data: st.DataObject) -> None:
    pool = empty_pool(4)
    for _ in range(data.draw(st.integers(0, 20))):
        held = [block for block, count in enumerate(pool.refs) if count]
        moves = ["touch"] + ["take"] * bool(pool.free) + ["release"] * bool(held)
        match data.draw(st.sampled_from(moves)):
            case "take":
                _, pool = take(pool)
            case "touch":
                pool = touch(pool, (data.draw(st.integers(0, 3)),))
            case _:
                pool = release(pool, (data.draw(st.sampled_from(held)),))
        assert sorted(pool.free) == [block for block, count in enumerate(pool.refs) if not count]


def test_a_key_is_published_once() -> None:
    pool = publish(empty_pool(2), 0, 5)
    assert is_cached(pool, 5)
    assert publish(pool, 1, 5) is pool
    assert publish(pool, 1, 6).keys == (5, 6)
    assert cleared(publish(pool, 1, 6)).keys == (0, 0)


def test_a_hit_ends_at_the_first_gap() -> None:
    pool = Pool(refs=(0, 0, 0), keys=(3, 1, 4), free=(0, 1, 2))
    assert longest_hit(pool, (1, 2, 3)) == (1,)
    assert longest_hit(pool, (1, 3, 4)) == (1, 0, 2)
    assert longest_hit(pool, (2, 1)) == ()
