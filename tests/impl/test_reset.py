"""Resets: with stores and loads in flight, before the pool is bound, one after another, with survivors.

The first scenarios are those of vLLM PRs 39726 (pinning) and 48102 (fencing).
"""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import Config, Discipline
from kvoffload.engine import Engine
from kvoffload.errors import NotBound
from kvoffload.operations import Stream
from kvoffload.request import Phase

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


def test_pinning_eager_stores_in_flight_make_a_reset_false_until_they_have_drained(serving: Make) -> None:
    s = serving("pinning", 4, 4)
    s.submit(1, "ab")
    s.compute()
    s.engine.preempt(1)
    assert s.in_use() == (2, 2)
    assert s.engine.reset("invalidate", "preempt") is False
    assert s.in_use() == (2, 2)
    assert s.cached() == (0, 0)
    s.drain()
    assert s.in_use() == (0, 0)
    assert s.cached() == (0, 0)
    assert s.engine.reset("invalidate", "preempt") is True
    assert s.engine.statistics.false_resets == 1


def test_pinning_lazy_stores_in_flight_make_a_reset_false_until_they_have_drained(serving: Make) -> None:
    s = serving("pinning", 4, 4, store_mode="lazy")
    s.submit(1, "ab")
    s.compute()
    s.engine.finish(1)
    s.runtime.schedule()
    assert s.in_use() == (2, 2)
    assert s.engine.reset("invalidate", "preempt") is False
    assert s.in_use() == (2, 2)
    s.drain()
    assert s.in_use() == (0, 0)
    assert s.cached() == (0, 0)
    assert s.engine.reset("invalidate", "preempt") is True


def with_ab_on_the_host_alone(s: Any) -> None:
    """Request 2 waits for what only the host has."""
    s.submit(1, "ab")
    s.serve()
    s.submit(8, "wxyz")
    s.serve()
    s.submit(2, "ab")


def test_pinning_a_load_in_flight_makes_a_reset_false_until_it_has_drained(serving: Make) -> None:
    s = serving("pinning", 4, 6)
    with_ab_on_the_host_alone(s)
    s.runtime.schedule()
    assert s.engine.requests[2].phase is Phase.LOADING
    assert s.in_use() == (2, 2)
    assert s.engine.reset("invalidate", "preempt") is False
    assert s.engine.requests[2].phase is Phase.WAITING
    assert s.engine.can_admit(2)
    assert s.in_use() == (2, 2)
    s.drain()
    assert s.in_use() == (0, 0)
    assert s.cached() == (0, 0)
    assert s.engine.reset("invalidate", "preempt") is True


@both
def test_a_load_that_no_worker_knows_of_is_cancelled_by_a_reset(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 6)
    with_ab_on_the_host_alone(s)
    load = s.engine.admit(2).load
    assert s.in_use() == (2, 2)
    assert s.engine.reset("invalidate", "preempt") is True
    assert s.in_use() == (0, 0)
    assert load not in s.engine.jobs
    assert s.runtime.schedule().plan.loads == ()


def test_fencing_a_reset_takes_everything_at_once_and_late_reports_change_nothing(serving: Make) -> None:
    s = serving("fencing", 4, 4)
    s.submit(1, "ab")
    s.compute()
    s.engine.preempt(1)
    assert s.engine.reset("invalidate", "preempt") is True
    assert s.in_use() == (0, 0)
    s.drain()
    assert s.in_use() == (0, 0)
    assert s.cached() == (0, 0)
    assert s.engine.statistics.stale_completions == 1
    assert s.engine.reset("invalidate", "preempt") is True


def test_fencing_a_live_request_is_scheduled_again_after_a_reset(serving: Make) -> None:
    """vLLM PR 48102: ids of forgotten jobs stayed behind in the request, and it was deferred for ever."""
    s = serving("fencing", 4, 4)
    s.submit(1, "ab", "c")
    s.compute()
    s.engine.preempt(1)
    assert s.engine.lookup(1).cause == "own jobs outstanding"
    s.engine.reset("invalidate", "preempt")
    assert s.engine.lookup(1).device_blocks == ()
    s.serve()
    assert s.engine.requests[1].phase is Phase.DONE
    assert s.cached() == (3, 3)


def test_fencing_reused_blocks_wait_for_the_copies_that_a_reset_forgot(serving: Make) -> None:
    s = serving("fencing", 2, 2)
    s.submit(1, "ab")
    s.compute()
    s.engine.reset("invalidate", "preempt")
    s.submit(2, "xy")
    s.engine.abort(1)
    plan = s.runtime.schedule().plan
    assert plan.flush == (0,)
    assert s.ledger.runnable() == ((0, Stream.STORE),)
    s.ledger.run(0, Stream.STORE)
    assert s.ledger.runnable() == ((0, Stream.COMPUTE),)
    s.serve()
    assert s.ledger.misreads == []
    assert s.cached() == (2, 2)


def test_fencing_every_launch_after_a_reset_waits_for_what_was_forgotten(serving: Make) -> None:
    """Also one that touches none of its blocks: a reset orders all jobs flushed, and they stay so."""
    s = serving("fencing", 4, 4)
    s.submit(1, "ab")
    s.compute()
    s.engine.reset("invalidate", "preempt")
    s.engine.abort(1)
    for request, prompt in ((2, "x"), (3, "y")):
        s.submit(request, prompt)
        assert 0 in s.runtime.schedule().plan.flush
        s.run(Stream.COMPUTE)
        if request == 2:
            assert s.engine.can_handle_output_of() == 1
            assert not s.runtime.can_handle_output()
            s.ledger.run(0, Stream.STORE)
            s.run(Stream.COMPUTE)
        s.runtime.handle_output()
    s.drain()
    assert list(s.engine.jobs) == []


def test_fencing_the_fence_stays_when_a_report_is_lost_and_harms_nobody(serving: Make) -> None:
    s = serving("fencing", 2, 2)
    s.submit(1, "ab")
    s.compute()
    s.engine.reset("invalidate", "preempt")
    s.run(Stream.STORE)
    s.ledger.collect(0, 0)
    s.serve()
    assert s.engine.requests[1].phase is Phase.DONE
    assert list(s.engine.jobs) == [0]
    assert s.in_use() == (0, 0)


@both
def test_a_reset_before_the_pool_is_bound_is_refused(discipline: Discipline) -> None:
    engine = Engine(Config(discipline, 4, 4))
    engine.submit(1, (1, 2), (1, 2))
    with pytest.raises(NotBound):
        engine.reset("invalidate", "preempt")
    with pytest.raises(NotBound):
        engine.admit(1)
    with pytest.raises(NotBound):
        engine.launch()
    assert not engine.can_lookup(1)
    assert not engine.can_admit(1)
    assert not engine.can_launch()
    assert engine.statistics.resets == 0
    engine.bind()
    assert engine.reset("invalidate", "preempt") is True
    assert engine.can_admit(1)


@both
def test_a_reset_drops_what_a_lookup_had_pinned(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.serve()
    s.submit(2, "abc")
    assert len(s.engine.lookup(2).device_blocks) == 2
    assert s.in_use() == (2, 0)
    assert s.engine.reset("invalidate", "preempt") is True
    assert s.in_use() == (0, 0)
    assert s.engine.requests[2].pins is None


@both
def test_a_survivor_of_invalidate_goes_on_and_publishes_nothing(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab", "c")
    s.compute()
    s.drain()
    assert s.cached() == (2, 2)
    assert s.engine.reset("invalidate", "keep") is False
    assert s.cached() == (0, 0)
    assert s.engine.requests[1].phase is Phase.RUNNING
    s.serve()
    assert s.engine.requests[1].phase is Phase.DONE
    assert s.cached() == (0, 0)
    assert s.engine.reset("invalidate", "keep") is True
    assert s.ledger.misreads == []


@both
def test_a_survivor_of_evict_is_stored_again_from_its_first_block(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab", "c")
    s.compute()
    s.drain()
    assert s.engine.reset("evict", "keep") is (discipline == "fencing")
    assert s.cached() == (0, 0)
    s.serve()
    assert s.cached() == (1, 3)


@both
def test_the_output_of_a_step_that_a_reset_interrupted_is_not_published(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.runtime.schedule()
    s.engine.reset("invalidate", "preempt")
    assert s.in_use()[0] == 2
    s.drain()
    assert s.cached() == (0, 0)
    assert s.in_use() == (0, 0)
    s.serve()
    assert s.cached() == (2, 2)
    assert s.ledger.misreads == []


@both
def test_job_ids_are_not_used_again_after_a_reset(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 8)
    s.submit(1, "ab")
    s.compute()
    s.engine.reset("invalidate", "preempt")
    s.drain()
    s.runtime.schedule()
    assert list(s.engine.jobs) == [1]


@both
def test_words_that_no_reset_knows_are_refused(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    with pytest.raises(ValueError, match="flush"):
        s.engine.reset("flush", "preempt")
    with pytest.raises(ValueError, match="abort"):
        s.engine.reset("evict", "abort")
    with pytest.raises(ValueError, match="disk"):
        s.engine.reset("evict", "keep", "disk")
    with pytest.raises(ValueError, match="the other one would serve old KV"):
        s.engine.reset("invalidate", "keep", "device")
    with pytest.raises(ValueError, match="preempts nobody"):
        s.engine.reset("evict", "preempt", "host")
    assert s.engine.statistics.resets == 0


@both
def test_a_reset_of_the_device_tier_leaves_the_host_its_keys(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.serve()
    assert s.cached() == (2, 2)
    assert s.engine.reset("evict", "preempt", "device") is True
    assert s.cached() == (0, 2)
    s.submit(2, "ab")
    s.runtime.schedule()
    assert s.engine.requests[2].phase is Phase.LOADING
    s.serve()
    assert s.cached() == (2, 2)
    assert s.ledger.misreads == []


@both
def test_a_reset_of_the_host_tier_leaves_the_device_its_keys(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.serve()
    assert s.engine.reset("evict", "keep", "host") is True
    assert s.cached() == (2, 0)
    s.submit(2, "ab", "c")
    s.serve()
    assert s.cached() == (3, 3)


@both
def test_stores_that_a_reset_of_the_device_spares_are_not_made_again(serving: Make, discipline: Discipline) -> None:
    """They go on, so what they carry still counts as being stored."""
    s = serving(discipline, 6, 4)
    s.submit(1, "ab")
    s.compute()
    assert s.engine.reset("evict", "preempt", "device") is (discipline == "fencing")
    s.submit(2, "ab")
    s.compute()
    assert list(s.engine.jobs) == [0]
    s.drain()
    assert s.cached() == (2, 2)
    s.serve()
    assert s.cached() == (2, 2)
    assert s.ledger.misreads == []


@both
def test_each_invalidating_reset_begins_a_generation(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2)
    generations = []
    for _ in range(3):
        generations.append(s.engine.scheduler.generation)
        assert s.engine.reset("invalidate", "preempt") is True
        s.engine.reset("evict", "preempt")
    assert generations == [0, 1, 2]


@both
@pytest.mark.parametrize(
    ("words", "stored"),
    [
        (("evict", "keep", "all"), 0),
        (("evict", "keep", "host"), 0),
        (("evict", "keep", "device"), 2),
        (("invalidate", "keep", "all"), 2),
    ],
)
def test_a_survivor_offers_its_blocks_again_where_the_host_lost_them_and_they_are_of_use(
    serving: Make, discipline: Discipline, words: tuple[Any, Any, Any], stored: int
) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab", "c")
    s.compute()
    s.drain()
    s.engine.reset(*words)
    assert s.engine.requests[1].stored == stored
