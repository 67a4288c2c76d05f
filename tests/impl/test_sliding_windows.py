"""Sliding windows: a growing request gives up the leading blocks that its window has left."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import Discipline
from kvoffload.ids import NO_BLOCK
from kvoffload.operations import Stream
from kvoffload.request import Phase

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


@both
def test_a_growing_request_gives_up_what_its_window_has_left(serving: Make, discipline: Discipline) -> None:
    """A store still reads it: under pinning the job holds it, under fencing nobody does."""
    s = serving(discipline, 3, 1, window=1)
    s.submit(1, "ab", "12")
    s.compute()
    s.engine.grow(1)
    assert s.engine.requests[1].table == [NO_BLOCK, 1, 2]
    assert s.engine.device_pool.counts == [1 if discipline == "pinning" else 0, 1, 1]
    s.engine.abort(1)
    s.drain()
    assert s.in_use() == (0, 0)


@both
def test_a_step_keeps_no_block_that_the_window_of_its_request_had_left(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 1, window=1)
    s.submit(1, "ab", "12")
    s.compute()
    s.drain()
    s.engine.grow(1)
    s.runtime.launch()
    s.engine.preempt(1)
    assert [s.engine.device_pool.counts[block] for block in (0, 2)] == [0, 1]
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    s.drain()
    assert s.in_use() == (0, 0)


@both
def test_with_a_window_a_request_may_be_longer_than_the_device(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 1, window=1)
    s.submit(1, "ab", "12345")
    s.serve()
    assert s.engine.requests[1].phase is Phase.DONE
    assert s.in_use() == (0, 0)
    assert s.ledger.misreads == []
    with pytest.raises(ValueError, match="request 2 needs 3 device blocks of 2: it cannot end"):
        s.submit(2, "abc")
    with pytest.raises(ValueError, match="request 1 needs 2 device blocks of 1: it cannot end"):
        serving(discipline, 1, 1, window=1).submit(1, "a", "bc")


def test_a_window_needs_depth_1(serving: Make) -> None:
    with pytest.raises(ValueError, match="window 1 needs depth 1: at depth 2 what it leaves is still read"):
        serving("pinning", 4, 4, window=1, depth=2)


@both
def test_a_window_that_is_not_outgrown_keeps_every_block(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, window=2)
    s.submit(1, "a", "bcd")
    s.compute()
    assert s.engine.grow(1) == 1
    s.compute()
    assert s.engine.grow(1) == 2
    assert s.engine.requests[1].table == [0, 1, 2]
    s.compute()
    s.engine.grow(1)
    assert s.engine.requests[1].table == [NO_BLOCK, 1, 2, 3]
