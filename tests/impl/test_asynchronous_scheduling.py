"""Depth 2: the next step is launched while the output of the one before it is awaited."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import Config, Discipline
from kvoffload.errors import NothingToLaunch, WrongPhase
from kvoffload.operations import Stream
from kvoffload.request import Phase

Make = Callable[..., Any]
BOTH = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


def held(s: Any) -> list[int]:
    """References on device blocks that are not those of stores."""
    counts = list(s.engine.device_pool.counts)
    if s.engine.config.discipline == "pinning":
        for job in s.engine.jobs.values():
            for block in job.device_blocks:
                counts[block] -= 1
    return counts


def in_two_steps(make: Make, discipline: Discipline) -> Any:
    """Request 0 computes its first block in step 0 and decodes its second one in step 1; neither output is handled."""
    s = make(discipline, 4, 4, depth=2)
    s.submit(0, "a", "bc")
    assert [type(event).__name__ for event in s.runtime.schedule().events] == ["Admitted", "Launched"]
    assert [type(event).__name__ for event in s.runtime.schedule().events] == ["Grown", "Launched"]
    return s


def test_another_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="depth 3 does not exist; use 1 or 2"):
        Config("pinning", 2, 2, depth=3)


@BOTH
def test_each_scheduling_call_launches_one_step_until_the_pipeline_is_full(
    serving: Make, discipline: Discipline
) -> None:
    s = in_two_steps(serving, discipline)
    request = s.engine.requests[0]
    assert (request.computed, request.ahead, request.table) == (0, 2, [0, 1])
    assert s.engine.can_handle_output_of() == 0
    assert s.runtime.schedule().events == ()
    with pytest.raises(NothingToLaunch, match="the output of step 0 is not handled yet"):
        s.runtime.launch()
    with pytest.raises(WrongPhase, match="request 0 has no use for another block now"):
        s.engine.grow(0)


@BOTH
def test_the_second_step_reads_what_the_first_one_writes(serving: Make, discipline: Discipline) -> None:
    s = in_two_steps(serving, discipline)
    first, second = s.ledger.shards[0].computes
    assert [block for block, _ in first.shares[0].writes] == [0]
    assert [block for block, _ in second.shares[0].reads] == [0]
    assert [block for block, _ in second.shares[0].writes] == [1]
    s.run(Stream.COMPUTE)
    assert s.ledger.misreads == []


@BOTH
def test_outputs_are_handled_in_order_and_each_publishes_its_own(serving: Make, discipline: Discipline) -> None:
    s = in_two_steps(serving, discipline)
    s.run(Stream.COMPUTE)
    assert s.cached() == (0, 0)
    s.runtime.handle_output()
    assert (s.engine.requests[0].computed, s.cached(), s.engine.can_handle_output_of()) == (1, (1, 0), 1)
    s.runtime.handle_output()
    assert (s.engine.requests[0].computed, s.cached(), s.engine.can_handle_output_of()) == (2, (2, 0), None)


@BOTH
def test_whatever_output_is_there_is_polled(serving: Make, discipline: Discipline) -> None:
    s = in_two_steps(serving, discipline)
    s.run(Stream.COMPUTE)
    assert [type(event).__name__ for event in s.runtime.poll()] == ["OutputHandled", "OutputHandled"]


@pytest.mark.parametrize("way", ["preempt", "abort", "reset"])
@BOTH
def test_both_steps_keep_the_blocks_that_they_use(serving: Make, discipline: Discipline, way: str) -> None:
    """vLLM PR 45357: what a step still writes is given to nobody before that step's output is handled."""
    s = in_two_steps(serving, discipline)
    s.ledger.run(0, Stream.COMPUTE)
    s.runtime.handle_output()
    s.runtime.schedule()
    assert held(s) == [1, 1, 1, 0]
    if way == "reset":
        s.engine.reset("evict", "preempt")
    else:
        getattr(s.engine, way)(0)
    assert held(s) == [2, 2, 1, 0]
    s.ledger.run(0, Stream.COMPUTE)
    s.runtime.handle_output()
    assert held(s) == [1, 1, 1, 0]
    s.ledger.run(0, Stream.COMPUTE)
    s.runtime.handle_output()
    assert held(s) == [0, 0, 0, 0]
    assert s.engine.requests[0].phase is (Phase.DONE if way == "abort" else Phase.WAITING)
    assert s.cached()[0] == (0 if way == "reset" else 1)


@BOTH
def test_an_output_may_end_a_request_that_the_next_step_computes_for(serving: Make, discipline: Discipline) -> None:
    """A stop token in the output of step 0; step 1 was launched on the assumption that there would be none."""
    s = in_two_steps(serving, discipline)
    with pytest.raises(WrongPhase, match="request 0 has no output that could stop it"):
        s.engine.stop(0)
    s.ledger.run(0, Stream.COMPUTE)
    s.runtime.handle_output()
    s.engine.stop(0)
    assert (s.engine.requests[0].phase, held(s)) == (Phase.DONE, [1, 1, 0, 0])
    assert s.engine.has_work()
    s.ledger.run(0, Stream.COMPUTE)
    s.runtime.handle_output()
    assert (held(s), s.cached()[0]) == ([0, 0, 0, 0], 1)


@BOTH
def test_a_request_with_all_of_its_outputs_is_finished_and_not_stopped(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(0, "a")
    s.compute()
    with pytest.raises(WrongPhase, match="or has had its last one"):
        s.engine.stop(0)
    s.engine.finish(0)


@BOTH
def test_a_block_that_was_not_launched_is_given_back_at_once(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, depth=2)
    s.submit(0, "a", "b")
    s.runtime.schedule()
    assert s.engine.grow(0) == 1
    s.engine.preempt(0)
    assert held(s) == [1, 0, 0, 0]
    assert (s.engine.requests[0].ahead, s.engine.requests[0].table) == (0, [])


@BOTH
def test_a_request_that_was_preempted_is_admitted_and_launched_again_meanwhile(
    serving: Make, discipline: Discipline
) -> None:
    """Its old part of the older step has left, its new one has not."""
    s = serving(discipline, 4, 4, depth=2)
    s.submit(0, "a")
    s.runtime.schedule()
    s.engine.reset("evict", "preempt")
    s.runtime.schedule()
    assert [[share.left for share in step.shares.values()] for step in s.engine.scheduler.pipeline] == [[True], [False]]
    s.drain()
    s.drain()
    assert (s.engine.requests[0].computed, s.cached()[0]) == (1, 1)


@BOTH
def test_pressure_preempts_nobody_who_frees_nothing_yet(serving: Make, discipline: Discipline) -> None:
    """vLLM PR 49675: both are in the launched step, and the pool is full."""
    s = serving(discipline, 2, 4, depth=2)
    s.submit(0, "a", "b")
    s.submit(1, "c", "d")
    s.runtime.schedule()
    assert s.engine.scheduler.wants_block(0)
    assert s.engine.pressure_victim() is None
    assert s.runtime.schedule().events == ()
    s.drain()
    assert s.engine.pressure_victim() == 1


@pytest.mark.parametrize("output_from", ["all", "first"])
@BOTH
def test_a_lagging_worker_has_at_most_three_computes_waiting(
    serving: Make, discipline: Discipline, output_from: str
) -> None:
    """Two whose output is awaited, and one that it lags behind the first worker."""
    s = serving(discipline, 6, 6, workers=2, depth=2, output_from=output_from)
    s.submit(0, "a", "bcde")
    for _ in range(8):
        s.runtime.schedule()
        s.runtime.schedule()
        if (0, Stream.COMPUTE) in s.ledger.runnable():
            s.ledger.run(0, Stream.COMPUTE)
        s.runtime.poll()
    waiting = {"all": 2, "first": 3}[output_from]
    assert len(s.ledger.shards[1].computes) == waiting
    assert s.engine.can_launch() is (output_from == "first")
    assert s.runtime.can_launch() is False
    s.serve()
    assert s.ledger.misreads == []
