"""The lives of requests: lookups, admission, growth under pressure, preemption, abort in every phase."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import Discipline
from kvoffload.errors import NothingToLaunch, NotRunnable, OutOfBlocks, UnknownJob, UnknownRequest, WrongPhase
from kvoffload.operations import Stream
from kvoffload.request import NO_GENERATION, Phase
from kvoffload.scheduler import Deferred
from kvoffload.step_report import Admitted, Launched, LookupReleased

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


def loading(s: Any, launched: bool = True) -> None:
    """Request 2 loads "ab" from the host into the device blocks that request 8 has left."""
    s.submit(1, "ab")
    s.serve()
    s.submit(8, "wxyz")
    s.serve()
    s.submit(2, "ab", "c")
    s.engine.admit(2)
    if launched:
        s.runtime.launch()


@both
def test_a_prefix_is_found_on_the_device_first_and_then_on_the_host(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 8)
    s.submit(1, "abcd")
    s.serve()
    s.submit(2, "xy")
    s.serve()
    s.submit(3, "abcd")
    found = s.engine.lookup(3)
    assert (len(found.device_blocks), len(found.host_blocks)) == (2, 2)
    admission = s.engine.admit(3)
    assert admission.device_blocks == found.device_blocks
    assert tuple(pair.source for pair in admission.pairs) == found.host_blocks
    assert tuple(pair.destination for pair in admission.pairs) == admission.fresh
    assert tuple(pair.key for pair in admission.pairs) == s.engine.requests[3].prompt[2:]
    assert list(s.engine.jobs) == [admission.load]
    s.serve()
    assert s.engine.requests[3].phase is Phase.DONE
    assert s.ledger.misreads == []


@both
def test_a_lookup_pins_until_it_is_repeated_released_or_aborted(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.serve()
    s.submit(2, "ab")
    s.engine.lookup(2)
    s.engine.lookup(2)
    assert s.in_use() == (2, 0)
    s.engine.release_lookup(2)
    assert s.in_use() == (0, 0)
    with pytest.raises(WrongPhase):
        s.engine.release_lookup(2)
    s.engine.lookup(2)
    s.engine.abort(2)
    assert s.in_use() == (0, 0)


@both
def test_a_hit_is_not_counted_as_room_for_the_rest(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 1)
    s.submit(1, "ab")
    s.serve()
    s.submit(2, "xy")
    s.engine.admit(2)
    s.submit(3, "abc")
    assert not s.engine.can_admit(3)
    with pytest.raises(OutOfBlocks):
        s.engine.admit(3)
    assert s.in_use() == (2, 0)
    s.engine.lookup(3)
    with pytest.raises(OutOfBlocks):
        s.engine.admit(3)
    assert len(s.engine.requests[3].pins.device) == 2


@both
def test_the_youngest_running_request_makes_room_for_one_that_grows(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 8)
    s.submit(1, "a", "b")
    s.submit(2, "v", "w")
    s.submit(3, "x", "y")
    s.compute()
    s.drain()
    assert s.engine.pressure_victim() == 3
    report = s.runtime.schedule()
    assert [type(event).__name__ for event in report.events] == ["Preempted", "Grown", "Launched"]
    assert [request.phase for request in s.engine.requests.values()] == [Phase.RUNNING, Phase.RUNNING, Phase.WAITING]
    s.serve()
    assert {request.phase for request in s.engine.requests.values()} == {Phase.DONE}
    assert s.ledger.misreads == []


@both
def test_who_was_preempted_does_not_come_back_in_the_same_call(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 8)
    s.submit(2, "x", "y")
    for _ in range(2):
        s.compute()
        s.drain()
    s.submit(1, "a", "b")
    s.compute()
    s.drain()
    report = s.runtime.schedule()
    assert [type(event).__name__ for event in report.events] == ["Preempted", "Grown", "Launched"]
    assert s.engine.can_admit(2)
    s.serve()
    assert {request.phase for request in s.engine.requests.values()} == {Phase.DONE}


def test_pinning_a_preemption_that_frees_nothing_does_not_cascade(serving: Make) -> None:
    """vLLM issue 49674: victims whose blocks are held by others were preempted one after another, for nothing."""
    s = serving("pinning", 3, 8)
    s.submit(1, "a", "b")
    s.submit(2, "v", "w")
    s.submit(3, "x", "y")
    s.compute()
    report = s.runtime.schedule()
    assert [type(event).__name__ for event in report.events] == ["Preempted"]
    assert s.engine.requests[2].phase is Phase.RUNNING
    s.serve()
    assert {request.phase for request in s.engine.requests.values()} == {Phase.DONE}


@both
def test_a_preempted_request_leaves_its_blocks_to_the_step_until_the_output(
    serving: Make, discipline: Discipline
) -> None:
    s = serving(discipline, 4, 4, store_mode="lazy")
    s.submit(1, "ab")
    s.runtime.schedule()
    s.engine.preempt(1)
    assert s.in_use() == (2, 0)
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    assert s.in_use() == (0, 0)
    assert s.cached() == (0, 0)


def test_pinning_abort_while_loading_ends_the_request_and_the_load_keeps_its_blocks(serving: Make) -> None:
    s = serving("pinning", 4, 6)
    loading(s)
    s.engine.abort(2)
    assert s.engine.requests[2].phase is Phase.DONE
    assert s.in_use() == (2, 2)
    s.drain()
    assert s.in_use() == (0, 0)
    assert not set(s.engine.requests[2].prompt) & set(s.engine.device_pool.cache.blocks)


def test_fencing_abort_while_loading_drains_the_request(serving: Make) -> None:
    s = serving("fencing", 4, 6)
    loading(s)
    s.engine.abort(2)
    assert s.engine.requests[2].phase is Phase.DRAINING
    assert s.in_use() == (2, 2)
    with pytest.raises(WrongPhase):
        s.engine.abort(2)
    s.drain()
    assert s.engine.requests[2].phase is Phase.DONE
    assert s.in_use() == (0, 0)
    assert not set(s.engine.requests[2].prompt) & set(s.engine.device_pool.cache.blocks)


def test_fencing_a_request_preempted_while_loading_waits_again_when_its_load_is_done(serving: Make) -> None:
    s = serving("fencing", 4, 6)
    loading(s)
    s.engine.preempt(2)
    assert s.engine.requests[2].phase is Phase.DRAINING
    s.drain()
    assert s.engine.requests[2].phase is Phase.WAITING
    assert s.in_use() == (0, 0)
    s.serve()
    assert s.engine.requests[2].phase is Phase.DONE
    assert s.ledger.misreads == []


def test_fencing_a_request_preempted_and_then_aborted_while_loading_ends(serving: Make) -> None:
    s = serving("fencing", 4, 6)
    loading(s)
    s.engine.preempt(2)
    s.engine.abort(2)
    assert s.engine.requests[2].returns is False
    s.drain()
    assert s.engine.requests[2].phase is Phase.DONE


def test_fencing_an_abort_ends_a_request_that_once_came_back_from_draining(serving: Make) -> None:
    s = serving("fencing", 4, 6)
    loading(s)
    s.engine.preempt(2)
    s.drain()
    s.engine.admit(2)
    s.runtime.launch()
    s.engine.abort(2)
    s.drain()
    assert s.engine.requests[2].phase is Phase.DONE


@both
def test_what_was_loaded_is_read_and_not_computed(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 8)
    s.submit(1, "ab")
    s.serve()
    s.submit(8, "wxyz")
    s.serve()
    s.submit(2, "abc")
    s.runtime.schedule()
    s.drain()
    (share,) = s.runtime.schedule().plan.shares
    assert (len(share.reads), len(share.writes)) == (2, 1)


@both
def test_a_load_that_was_never_launched_cannot_have_been_copied(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 6)
    loading(s, launched=False)
    (load,) = s.engine.jobs
    s.engine.report(0, [load])
    assert s.engine.statistics.stale_completions == 1
    assert not s.engine.can_wake(2)
    s.serve()
    assert s.engine.requests[2].phase is Phase.DONE
    assert s.ledger.misreads == []


@both
def test_a_preempted_request_begins_anew(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab", "c")
    s.compute()
    s.engine.preempt(1)
    request = s.engine.requests[1]
    assert (request.phase, request.table, request.computed, request.stored) == (Phase.WAITING, [], 0, 0)
    assert (request.ahead, request.generation) == (0, NO_GENERATION)
    assert request.returns is False
    assert request.deferred is (discipline == "fencing")


@both
@pytest.mark.parametrize("leave", ["preempt", "abort"])
def test_leaving_before_the_load_is_launched_cancels_it(serving: Make, discipline: Discipline, leave: str) -> None:
    s = serving(discipline, 4, 6)
    loading(s, launched=False)
    assert s.in_use() == (2, 2)
    getattr(s.engine, leave)(2)
    assert s.in_use() == (0, 0)
    assert len(s.engine.jobs) == 0
    assert not s.engine.can_launch()


@both
def test_a_load_that_is_reported_before_the_abort_leaves_nothing_behind(serving: Make, discipline: Discipline) -> None:
    """vLLM PR 32255: an abort that waits for a report which came already waits for ever."""
    s = serving(discipline, 4, 6)
    loading(s)
    s.drain()
    assert s.engine.can_wake(2)
    s.engine.abort(2)
    assert s.engine.requests[2].phase is Phase.DONE
    assert s.in_use() == (0, 0)


def test_pinning_a_late_wake_does_not_wake_a_new_load(serving: Make) -> None:
    s = serving("pinning", 4, 6)
    loading(s)
    s.engine.preempt(2)
    s.engine.admit(2)
    s.drain()
    assert not s.engine.can_wake(2)
    with pytest.raises(WrongPhase):
        s.engine.wake(2)
    s.runtime.launch()
    s.drain()
    s.engine.wake(2)
    assert s.engine.requests[2].phase is Phase.RUNNING


@both
def test_refusals_change_nothing(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, workers=2)
    s.submit(1, "ab", "c")
    s.submit(2, "x")
    s.serve()
    s.submit(3, "e", "f")
    s.submit(4, "y")
    s.compute()
    before = repr(s.engine)
    for refused in (
        lambda: s.submit(1, "q"),
        lambda: s.submit(3, "q"),
        lambda: s.engine.abort(1),
        lambda: s.engine.finish(2),
        lambda: s.engine.abort(77),
        lambda: s.engine.finish(3),
        lambda: s.engine.lookup(3),
        lambda: s.engine.admit(3),
        lambda: s.engine.wake(3),
        lambda: s.engine.preempt(1),
        lambda: s.engine.grow(4),
        lambda: s.engine.release_lookup(4),
        lambda: s.engine.collect(3),
        lambda: s.engine.report(0, [0, 10_000]),
        lambda: s.engine.report(0, [-1]),
        lambda: s.engine.handle_output(),
    ):
        with pytest.raises((WrongPhase, UnknownRequest, UnknownJob, NotRunnable)):
            refused()
        assert repr(s.engine) == before


@both
def test_requests_that_make_no_sense_are_refused(serving: Make, discipline: Discipline) -> None:
    engine = serving(discipline, 2, 2).engine
    for prompt, total in (((), (1,)), ((1,), (2,)), ((1, 1), (1, 1)), ((0,), (0,)), ((1, 2, 3), (1, 2, 3))):
        with pytest.raises(ValueError, match="request 1"):
            engine.submit(1, prompt, total)
    assert engine.requests == {}


@both
def test_requests_are_served_in_order_of_id_however_they_were_submitted(serving: Make, discipline: Discipline) -> None:
    for submitted in ((3, 1, 2), (2, 1), (1, 3, 2)):
        s = serving(discipline, 4, 4)
        for request in submitted:
            s.submit(request, "xyz"[request - 1])
        assert [share.request for share in s.runtime.schedule().plan.shares] == sorted(submitted)


@both
def test_an_ended_request_is_remembered_until_it_is_collected(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "a")
    s.serve()
    with pytest.raises(UnknownRequest):
        s.engine.finish(1)
    s.engine.collect(1)
    assert s.engine.requests == {}
    with pytest.raises(UnknownRequest):
        s.engine.collect(1)


@both
def test_lookups_that_stand_in_the_way_of_everybody_are_given_up(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 1)
    s.submit(1, "ab")
    s.submit(2, "xy")
    s.serve()
    s.submit(3, "abc")
    s.submit(4, "xyz")
    s.engine.lookup(3)
    s.engine.lookup(4)
    assert s.in_use() == (4, 0)
    given_up, admitted, launched = s.runtime.schedule().events
    assert given_up == LookupReleased(4)
    assert isinstance(admitted, Admitted)
    assert admitted.request == 3
    assert isinstance(launched, Launched)
    s.serve()
    assert {request.phase for request in s.engine.requests.values()} == {Phase.DONE}


@both
def test_a_lookup_is_given_up_before_anybody_who_runs_is_stuck(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 1)
    s.submit(1, "ab")
    s.serve()
    s.submit(2, "xy", "z")
    s.submit(3, "v")
    s.engine.admit(2)
    s.submit(4, "abc")
    s.engine.lookup(4)
    s.compute()
    s.drain()
    report = s.runtime.schedule()
    assert [type(event).__name__ for event in report.events] == ["LookupReleased", "Grown", "Admitted", "Launched"]
    s.serve()
    assert {request.phase for request in s.engine.requests.values()} == {Phase.DONE}


@both
def test_an_empty_launch_and_one_that_overtakes_are_refused(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    with pytest.raises(NothingToLaunch):
        s.runtime.launch()
    s.submit(1, "a")
    s.runtime.schedule()
    s.submit(2, "b")
    s.engine.admit(2)
    assert not s.engine.can_launch()
    with pytest.raises(NothingToLaunch):
        s.runtime.launch()
    with pytest.raises(NotRunnable):
        s.runtime.handle_output()


@both
def test_a_partial_admission_takes_what_it_loads_alone(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 8, admission="partial")
    loading(s)
    assert [len(s.engine.requests[2].table), s.in_use()[0]] == [2, 2]
    s.submit(3, "pq")
    assert len(s.engine.admit(3).fresh) == 1
    s.serve()
    assert [request.phase for request in s.engine.requests.values()] == [Phase.DONE] * 4
    assert s.ledger.misreads == []


@both
def test_of_two_that_hold_a_part_each_the_later_one_gives_way(serving: Make, discipline: Discipline) -> None:
    """Each has one of the two blocks; neither is looked up or admitted again before the other has got on."""
    s = serving(discipline, 2, 4, admission="partial")
    s.submit(1, "ab")
    s.submit(2, "cd")
    s.compute()
    s.run(Stream.STORE)
    s.runtime.poll()
    assert [len(request.table) for request in s.engine.requests.values()] == [1, 1]
    assert s.engine.preempt_under_pressure() == 2
    assert not s.engine.can_lookup(2)
    assert s.engine.lookup(2) == Deferred("requests that run are short of blocks")
    with pytest.raises(OutOfBlocks):
        s.engine.admit(2)
    s.engine.grow(1)
    assert s.engine.preempt_under_pressure() is None
    assert s.engine.can_lookup(2)
    s.serve()
    assert [request.phase for request in s.engine.requests.values()] == [Phase.DONE] * 2


@both
def test_a_request_that_loads_wakes_although_no_block_is_free(serving: Make, discipline: Discipline) -> None:
    """And then it can be preempted for an earlier one (vLLM issue 45387: it could not, and nobody got on)."""
    s = serving(discipline, 2, 4, admission="partial")
    s.submit(2, "c")
    s.serve()
    s.submit(3, "ef")
    s.serve()
    s.submit(1, "ab")
    s.engine.admit(1)
    s.submit(4, "cd")
    s.engine.admit(4)
    assert s.engine.requests[4].phase is Phase.LOADING
    assert s.engine.device_pool.free == 0
    s.serve()
    assert all(request.phase is Phase.DONE for request in s.engine.requests.values())


@both
def test_a_key_at_two_positions_is_refused_unless_the_configuration_allows_it(
    serving: Make, discipline: Discipline
) -> None:
    with pytest.raises(ValueError, match="request 1: keys must differ from each other"):
        serving(discipline, 4, 4).engine.submit(1, (7, 7), (7, 7))
    serving(discipline, 4, 4, repeats=True).engine.submit(1, (7, 7), (7, 7))


@both
def test_one_cached_block_serves_two_positions_and_counts_two_references(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 3, 4, repeats=True)
    s.engine.submit(1, (7, 7), (7, 7))
    s.serve()
    s.engine.submit(2, (7, 7, 8), (7, 7, 8))
    found = s.engine.lookup(2).device_blocks
    assert len(found) == 2
    assert len(set(found)) == 1
    assert s.engine.device_pool.counts[found[0]] == 2
    s.engine.release_lookup(2)
    assert s.engine.device_pool.counts == [0, 0, 0]
    s.engine.submit(3, (9,), (9,))
    s.engine.admit(3)
    assert s.engine.can_admit(2), "the hit is one free block of two, not both"
    admission = s.engine.admit(2)
    assert (admission.device_blocks, len(admission.fresh)) == (found, 1)
    s.serve()
    assert s.in_use() == (0, 0)
    assert s.ledger.misreads == []


@both
def test_a_key_at_two_positions_is_stored_once_and_loaded_twice(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 4, repeats=True)
    s.engine.submit(1, (7, 7), (7, 7))
    s.serve()
    assert s.engine.host_pool.cache.keys.count(7) == 1
    s.engine.submit(2, (8, 9), (8, 9))
    s.serve()
    s.engine.submit(3, (7, 7), (7, 7))
    pairs = s.engine.admit(3).pairs
    assert [len({pair.source for pair in pairs}), len({pair.destination for pair in pairs})] == [1, 2]
    assert s.engine.host_pool.counts[pairs[0].source] == 2
    s.serve()
    assert s.in_use() == (0, 0)
    assert s.ledger.misreads == []


@both
def test_only_who_waits_can_be_admitted(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "a")
    assert s.engine.can_admit(1) is True
    s.engine.admit(1)
    assert s.engine.can_admit(1) is False
    assert s.engine.can_admit(7) is False


@both
def test_who_has_left_a_step_does_not_hide_the_others_output(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "a")
    s.submit(2, "b", "c")
    s.runtime.schedule()
    s.engine.preempt(1)
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    assert s.engine.requests[2].computed == 1
    assert list(s.engine.device_pool.cache.blocks) == list(s.engine.requests[2].prompt)


@both
def test_a_partial_admission_takes_as_many_blocks_as_it_loads(serving: Make, discipline: Discipline) -> None:
    """Whether it was looked up before or not; and none where the device has all that is cached."""
    s = serving(discipline, 4, 8, admission="partial")
    s.submit(1, "ab")
    s.serve()
    s.submit(8, "wxyz")
    s.serve()
    s.submit(2, "abc")
    s.engine.lookup(2)
    assert len(s.engine.admit(2).fresh) == 2
    s.serve()
    s.engine.reset("evict", "keep", "host")
    s.submit(3, "abcd")
    admission = s.engine.admit(3)
    assert (len(admission.device_blocks), admission.load, admission.fresh) == (3, None, ())
