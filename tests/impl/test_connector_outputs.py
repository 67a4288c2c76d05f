"""What a connector answers to a report, field by field: the scheduler acts on nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import Discipline
from kvoffload.connector import ConnectorOutput, Settled
from kvoffload.operations import Stream

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


def outputs(s: Any, *jobs: int, failed: dict[int, tuple[int, ...]] | None = None) -> list[ConnectorOutput]:
    """Of a report of worker 0, which the scheduler does not get to know."""
    return list(s.engine.connector.update_connector_output(0, jobs, failed or {}))


def storing(s: Any) -> tuple[int, ...]:
    """Request 1 stores its two blocks with job 0. Answers their keys."""
    s.submit(1, "ab")
    s.compute()
    return s.engine.requests[1].total


def loading(s: Any) -> None:
    """Request 2 loads two blocks with job 2 into device blocks that request 8 has left."""
    s.submit(1, "ab")
    s.serve()
    s.submit(8, "yz")
    s.serve()
    s.submit(2, "ab")
    s.engine.admit(2)
    s.runtime.launch()


def test_pinning_nobody_waits_for_a_store(serving: Make) -> None:
    s = serving("pinning", 2, 2)
    storing(s)
    assert outputs(s, 0) == [ConnectorOutput(None, False, frozenset(), frozenset())]


def test_fencing_the_request_waits_for_its_store(serving: Make) -> None:
    s = serving("fencing", 2, 2)
    storing(s)
    assert outputs(s, 0) == [ConnectorOutput(Settled(0, 1, 0), False, frozenset(), frozenset())]


@both
def test_a_load_says_how_many_blocks_it_has_brought(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 4)
    loading(s)
    assert outputs(s, 2) == [ConnectorOutput(Settled(2, 2, 2), False, frozenset(), frozenset())]


@both
def test_a_load_that_was_given_up_has_brought_none(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 4)
    loading(s)
    s.engine.preempt(2)
    assert outputs(s, 2, failed={2: (0,)}) == [ConnectorOutput(Settled(2, 2, 0), False, frozenset(), frozenset())]


@both
def test_a_report_of_one_worker_of_two_is_no_news_and_not_stale(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2, workers=2)
    storing(s)
    assert outputs(s, 0) == [ConnectorOutput(None, False, frozenset(), frozenset())]
    assert outputs(s, 0) == [ConnectorOutput(None, True, frozenset(), frozenset())]


@both
def test_a_store_that_failed_in_part_names_the_key(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2)
    first, second = storing(s)
    (output,) = outputs(s, 0, failed={0: (1,)})
    assert (output.unstored, output.unreadable) == (frozenset([second]), frozenset())
    assert list(s.engine.host_pool.cache.blocks) == [first]


def test_pinning_the_failures_of_an_abandoned_store_are_nobodys_concern(serving: Make) -> None:
    s = serving("pinning", 2, 2)
    storing(s)
    s.engine.reset("evict", "preempt")
    assert outputs(s, 0, failed={0: (0,)}) == [ConnectorOutput(None, False, frozenset(), frozenset())]


@both
def test_a_store_that_expires_names_all_of_its_keys(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2, deadline=1.0)
    keys = storing(s)
    waits = None if discipline == "pinning" else Settled(0, 1, 0)
    assert s.engine.connector.expire(0) == ConnectorOutput(waits, False, frozenset(keys), frozenset())
    assert s.engine.connector.storing == set()


def test_pinning_an_abandoned_store_that_expires_names_none_and_leaves_the_new_one_alone(serving: Make) -> None:
    s = serving("pinning", 4, 4, deadline=1.0)
    keys = storing(s)
    s.engine.reset("evict", "preempt")
    s.compute()
    assert list(s.engine.jobs) == [0, 1]
    assert s.engine.connector.expire(0) == ConnectorOutput(None, False, frozenset(), frozenset())
    assert s.engine.connector.storing == set(keys)


@both
def test_a_load_that_expires_names_the_blocks_that_it_could_not_read(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 4, deadline=1.0)
    loading(s)
    sources = frozenset(pair.source for pair in s.engine.jobs[2].pairs)
    assert s.engine.connector.expire(2) == ConnectorOutput(Settled(2, 2, 0), False, frozenset(), sources)


@both
def test_an_abandoned_load_that_expires_names_none(serving: Make, discipline: Discipline) -> None:
    """What it could not read is found all the same: nobody has tried to."""
    s = serving(discipline, 2, 4, deadline=1.0)
    loading(s)
    s.engine.preempt(2)
    assert s.engine.connector.expire(2) == ConnectorOutput(Settled(2, 2, 0), False, frozenset(), frozenset())
    assert len(s.engine.host_pool.cache.blocks) == 4


def test_fencing_a_store_is_reported_after_its_request_was_collected(serving: Make) -> None:
    s = serving("fencing", 2, 2)
    storing(s)
    s.engine.finish(1)
    s.engine.collect(1)
    s.run(Stream.STORE)
    s.runtime.poll()
    assert s.cached() == (2, 2)
    assert s.in_use() == (0, 0)
