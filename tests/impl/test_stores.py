"""Which blocks are stored, when, and how often."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import Discipline
from kvoffload.errors import UnknownJob
from kvoffload.ids import Pair
from kvoffload.operations import Stream
from kvoffload.request import Phase
from kvoffload.stores import eager, lazy
from kvoffload.stores.choice import Choice

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


def stored(plan: Any) -> list[int]:
    """How many blocks each store of a launch carries."""
    return [len(store.pairs) for store in plan.stores]


@both
def test_a_key_on_its_way_is_not_stored_again_by_a_later_step_or_another_request(
    serving: Make, discipline: Discipline
) -> None:
    """vLLM PR 41289: in-flight stores were forgotten from one step to the next."""
    s = serving(discipline, 8, 8)
    s.submit(1, "abc")
    assert stored(s.runtime.schedule().plan) == [3]
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    s.submit(2, "abd")
    assert stored(s.runtime.schedule().plan) == [1]
    s.serve()
    assert s.cached() == (4, 4)


@both
def test_one_launch_stores_a_key_once_for_two_requests(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 8, 8)
    s.submit(1, "ab")
    s.submit(2, "ac")
    assert stored(s.runtime.schedule().plan) == [2, 1]


@both
def test_a_reset_forgets_what_is_on_its_way_so_that_it_is_stored_again(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 8, 8)
    s.submit(1, "ab")
    s.compute()
    s.engine.reset("invalidate", "preempt")
    s.engine.abort(1)
    s.submit(2, "ab")
    assert stored(s.runtime.schedule().plan) == [2]
    s.serve()
    assert s.cached() == (2, 2)
    assert s.ledger.misreads == []


@both
def test_what_does_not_fit_on_the_host_is_stored_when_there_is_room(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 2)
    s.submit(1, "abc")
    assert stored(s.runtime.schedule().plan) == [2]
    assert s.engine.requests[1].stored == 2
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    assert not s.engine.can_launch()
    s.drain()
    assert stored(s.runtime.schedule().plan) == [1]
    assert s.engine.requests[1].stored == 3


@both
def test_every_worker_must_report_before_a_key_can_be_found(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, workers=2)
    s.submit(1, "ab")
    s.compute()
    s.run(Stream.STORE)
    s.runtime.deliver(0, [0])
    s.engine.report(0, [0])
    assert s.cached() == (2, 0)
    assert s.engine.statistics.stale_completions == 1
    s.runtime.deliver(1, [0])
    assert s.cached() == (2, 2)


@both
def test_lazy_stores_take_cached_free_blocks_before_they_are_evicted(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, store_mode="lazy")
    s.submit(1, "abc")
    assert stored(s.runtime.schedule().plan) == []
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    assert not s.engine.can_launch()
    s.engine.finish(1)
    assert stored(s.runtime.schedule().plan) == [3]
    s.drain()
    assert s.cached() == (3, 3)
    assert not s.engine.can_launch()


@both
def test_lazy_stores_do_not_turn_the_host_over_for_what_the_device_still_has(
    serving: Make, discipline: Discipline
) -> None:
    s = serving(discipline, 4, 2, store_mode="lazy")
    s.submit(1, "abc")
    s.serve()
    assert s.cached() == (3, 2)
    assert not s.engine.can_launch()


def test_fencing_a_lazily_stored_block_is_reused_only_after_its_copy(serving: Make) -> None:
    s = serving("fencing", 2, 2, store_mode="lazy")
    s.submit(1, "ab")
    s.compute()
    s.engine.finish(1)
    assert stored(s.runtime.schedule().plan) == [2]
    s.submit(2, "xy")
    assert s.runtime.schedule().plan.flush == (0,)
    assert s.ledger.runnable() == ((0, Stream.STORE),)
    s.serve()
    s.submit(3, "ab")
    s.serve()
    assert s.engine.requests[3].phase is Phase.DONE
    assert s.ledger.misreads == []


def test_pinning_a_block_that_is_being_stored_is_not_reused(serving: Make) -> None:
    s = serving("pinning", 2, 2, store_mode="lazy")
    s.submit(1, "ab")
    s.compute()
    s.engine.finish(1)
    s.runtime.schedule()
    s.submit(2, "xy")
    assert not s.engine.can_admit(2)
    s.drain()
    assert s.engine.can_admit(2)


@both
def test_a_key_that_this_launch_evicts_from_the_host_is_stored_again_by_it(
    serving: Make, discipline: Discipline
) -> None:
    s = serving(discipline, 6, 2)
    s.submit(1, "ab")
    s.serve()
    s.submit(2, "q")
    s.submit(3, "ab")
    assert s.cached() == (2, 2)
    assert stored(s.runtime.schedule().plan) == [1, 1]
    assert s.cached() == (2, 0)
    s.drain()
    assert s.cached() == (3, 2)


def test_fencing_a_block_on_its_way_stays_evictable_and_is_not_stored_twice(serving: Make) -> None:
    s = serving("fencing", 4, 4, store_mode="lazy")
    s.submit(1, "ab")
    s.compute()
    s.engine.finish(1)
    assert stored(s.runtime.schedule().plan) == [2]
    assert s.in_use() == (0, 2)
    assert not s.engine.can_launch()


@both
def test_an_engine_with_stores_on_their_way_has_work_although_nobody_waits(
    serving: Make, discipline: Discipline
) -> None:
    """vLLM PR 41180: an idle engine did not step, so nothing was reported, and a reset never succeeded."""
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.compute()
    s.engine.finish(1)
    assert s.engine.has_work()
    s.drain()
    assert not s.engine.has_work()


@both
def test_a_job_can_only_be_delivered_where_it_was_copied(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, workers=2)
    s.submit(1, "a")
    s.compute()
    s.submit(2, "b")
    s.compute()
    s.ledger.run(0, Stream.STORE)
    for worker, jobs in ((0, [0, 1]), (0, [0, 0]), (1, [0])):
        with pytest.raises(UnknownJob):
            s.runtime.deliver(worker, jobs)
    assert s.ledger.copied(0) == (0,)
    assert s.engine.jobs[0].awaiting == {0, 1}
    s.runtime.deliver(0, [0])
    assert s.engine.jobs[0].awaiting == {1}


def test_what_eager_stores_choose(serving: Make) -> None:
    s = serving("pinning", 4, 4)
    s.submit(1, "ab")
    s.engine.admit(1)
    request = s.engine.requests[1]
    first, second = request.total
    host = s.engine.host_pool
    host.release(host.take(1))
    whole = Choice(request, (Pair(0, 1, first), Pair(1, 2, second)), 2)
    assert list(eager.choose([request], host, set(), 0)) == [whole]
    assert list(eager.choose([request], host, {first}, 0)) == [Choice(request, (Pair(1, 1, second),), 2)]
    assert list(eager.choose([request], host, {first, second}, 0)) == [Choice(request, (), 2)]
    assert list(eager.choose([request], host, set(), 1)) == []


def test_what_lazy_stores_choose(serving: Make) -> None:
    s = serving("pinning", 4, 4, store_mode="lazy")
    device, host = s.engine.device_pool, s.engine.host_pool
    device.cache.publish([(1, 71), (2, 72)])
    assert list(lazy.choose(device, host, set(), 0)) == [Choice(None, (Pair(1, 0, 71), Pair(2, 1, 72)), 0)]
    assert list(lazy.choose(device, host, set(), 2)) == [Choice(None, (Pair(1, 0, 71),), 0)]
    assert list(lazy.choose(device, host, {71}, 0)) == [Choice(None, (Pair(2, 0, 72),), 0)]
    assert list(lazy.choose(device, host, set(), 1)) == []


@both
def test_lazy_stores_look_no_further_than_their_window(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, store_mode="lazy", lazy_window=1)
    s.submit(1, "abcd")
    s.compute()
    s.engine.finish(1)
    assert stored(s.runtime.schedule().plan) == [1]
