"""The life of a request: found, admitted, grown, preempted, finished, aborted, in the order and with the references
that the rules say."""

import pytest
from tests.seeds.driving import facts, state_after

from kvmodel import Contract, Scope
from kvmodel import actions as act
from kvmodel.block_pool import HOLE
from kvmodel.request import DONE, DRAINING, LOADING, RUNNING, Pins
from kvmodel.transfer_job import ABANDONED, LIVE, LOAD, STORE
from kvproof.targets.command import describe
from kvproof.targets.view import expected
from kvproof.targets.wording import command_of

PINNING, FENCING = Contract("pinning"), Contract("fencing")
BOTH = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=["pinning", "fencing"])

AB_AC = Scope(device_blocks=3, host_blocks=3, workers=1, prompts=("ab", "ac"))
RELOAD = Scope(device_blocks=2, host_blocks=4, workers=1, prompts=("ab", "cd", "ab"), resets=2)

X_HANDLED = ('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")
X_SERVED = (*X_HANDLED, "run w0 store", "report w0 job 0", "finish x")
Z_WAITS = (
    *X_SERVED,
    *('submit y "cd"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 1"),
    *("finish y", 'submit z "ab"'),
)


def offered(contract: Contract, scope: Scope, *commands: str) -> list[str]:
    """What may happen next, in words."""
    machine, state = state_after(contract, scope, *commands)
    return [describe(command_of(action), scope) for action in machine.actions(state)]


def seen(contract: Contract, scope: Scope, *commands: str) -> dict[str, str]:
    machine, state = state_after(contract, scope, *commands)
    return facts(machine.setting, expected(state))


@BOTH
def test_nothing_but_submission_and_reset_is_possible_at_first(contract: Contract) -> None:
    assert offered(contract, AB_AC) == ['submit x "ab"', 'submit y "ac"', "reset invalidate"]


@BOTH
def test_an_admission_is_all_or_nothing(contract: Contract) -> None:
    """x and its two blocks leave y one; `ac` shares `a` only once x has computed it."""
    both = ('submit x "ab"', 'submit y "ac"', "admit x")
    assert "admit y" not in offered(contract, AB_AC, *both)
    assert "admit y" in offered(contract, AB_AC, *both, "launch", "run w0 compute", "handle output")


@BOTH
def test_a_hit_that_is_itself_free_is_no_room_for_the_rest(contract: Contract) -> None:
    """vLLM issues 45388 and 45387: two free blocks, one of them the hit, and two more are needed."""
    scope = Scope(device_blocks=3, host_blocks=1, workers=1, prompts=("a", "abc", "d"))
    one_free_hit = (
        *('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
        *("finish x", 'submit z "d"', "admit z"),
    )
    assert seen(contract, scope, *one_free_hit)["device"] == "1 0 0"
    assert "admit y" not in offered(contract, scope, *one_free_hit, 'submit y "abc"')
    assert "admit y" in offered(contract, scope, *one_free_hit, 'submit y "abc"', "abort z")


PARTIAL = pytest.mark.parametrize(
    "contract",
    [PINNING._replace(admission="partial"), FENCING._replace(admission="partial")],
    ids=["pinning", "fencing"],
)
HALVES = Scope(device_blocks=2, host_blocks=2, workers=1, prompts=("ab", "cd"), lookups=True)
EACH_HAS_A_PART = (
    *('submit x "ab"', "lookup x", "admit x", 'submit y "cd"', "lookup y", "admit y"),
    *("launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0", "run w0 store"),
    "report w0 job 1",
)


WINDOW = Scope(device_blocks=3, host_blocks=1, workers=1, prompts=("ab",), decode=2, window=1)
FIRST_LEFT = ('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "grow x")
STEP = ("launch", "run w0 compute", "handle output")


@BOTH
def test_a_growing_request_gives_up_what_its_window_has_left(contract: Contract) -> None:
    """`a` is being stored: under pinning the job holds it, under fencing it is free, and whoever takes it waits."""
    _, state = state_after(contract, WINDOW, *FIRST_LEFT)
    request = state.requests[0]
    assert request.table == (HOLE, 1, 2)
    assert state.device.refs == ((1, 1, 1) if contract.pins else (0, 1, 1))
    assert state.jobs[0].pairs[0].source == 0
    _, state = state_after(contract, WINDOW, *FIRST_LEFT, *STEP, "abort x")
    assert state.device.refs == ((1, 0, 0) if contract.pins else (0, 0, 0))


@BOTH
def test_it_can_take_the_block_that_it_leaves(contract: Contract) -> None:
    """With two blocks, and a store of the first: under pinning it grows when that is reported, under fencing at once,
    and the step that writes the block again flushes the store."""
    scope = WINDOW._replace(device_blocks=2)
    computed = FIRST_LEFT[:-1]
    assert ("grow x" in offered(contract, scope, *computed)) is not contract.pins
    stored = (*computed, "run w0 store", "report w0 job 0")
    assert "grow x" in offered(contract, scope, *stored)
    _, state = state_after(contract, scope, *(stored if contract.pins else computed), "grow x")
    assert state.requests[0].table == (HOLE, 1, 0)
    if not contract.pins:
        _, state = state_after(contract, scope, *computed, "grow x", "launch")
        assert state.steps[0].after_jobs == (0,)


def test_what_the_window_has_left_before_it_was_stored_is_passed_over() -> None:
    """The host has one block, which `a` is stored into: `ab` is put off, and left (vLLM issue 42761)."""
    _, state = state_after(FENCING, WINDOW, *FIRST_LEFT)
    assert state.requests[0].stored == 1
    left = (*FIRST_LEFT, *STEP, "grow x")
    _, state = state_after(FENCING, WINDOW, *left)
    assert state.requests[0].table[:2] == (HOLE, HOLE)
    _, state = state_after(FENCING, WINDOW, *left, "run w0 store", "report w0 job 0", "launch")
    assert [pair.key for job in state.jobs for pair in job.pairs if job.direction == STORE] == [3]
    assert state.requests[0].stored == 3


@BOTH
def test_of_a_block_at_two_positions_the_window_leaves_one(contract: Contract) -> None:
    scope = REPEATS._replace(prompts=("aab",), decode=1, window=2)
    hit = (*AAB_IS_CACHED, "admit x")
    _, state = state_after(contract, scope, *hit)
    block = state.requests[0].table[0]
    assert state.requests[0].table[:2] == (block, block)
    refs = state.device.refs[block]
    _, state = state_after(contract, scope, *hit, "grow x")
    assert state.requests[0].table[:2] == (HOLE, block)
    assert state.device.refs[block] == refs - 1


REPEATS = Scope(device_blocks=4, host_blocks=2, workers=1, prompts=("aab", "a"), repeats=True, lookups=True)
AAB_IS_CACHED = (
    *('submit x "aab"', "lookup x", "admit x", "launch", "run w0 compute", "handle output", "run w0 store"),
    *("report w0 job 0", "preempt x", "lookup x"),
)


@BOTH
def test_one_block_serves_every_position_of_its_key(contract: Contract) -> None:
    """`a` was computed twice and published once; the lookup pins that block for each position."""
    _, before = state_after(contract, REPEATS, *AAB_IS_CACHED[:6])
    assert before.device.keys.count(1) == 1
    machine, state = state_after(contract, REPEATS, *AAB_IS_CACHED)
    block = state.device.keys.index(1)
    assert state.requests[0].pins == Pins((block, block, state.device.keys.index(2)), ())
    assert state.device.refs[block] == 2
    admitted = machine.step(state, act.Admit(0))
    assert (admitted.requests[0].table[:2], admitted.device.refs[block]) == ((block, block), 2)
    ended = machine.step(machine.step(state, act.Admit(0)), act.Abort(0))
    assert ended.device.refs == (0, 0, 0, 0)
    assert sorted(ended.device.free) == [0, 1, 2, 3]


@BOTH
@pytest.mark.parametrize("used", [0, 1, 2, 3])
def test_whoever_uses_fewer_hits_than_were_pinned_gives_the_others_back(contract: Contract, used: int) -> None:
    """Position by position: of a block that was pinned for two, one reference goes and one stays."""
    machine, state = state_after(contract, REPEATS, *AAB_IS_CACHED)
    pins = state.requests[0].pins
    assert pins is not None
    fresh = tuple(block for block in state.device.free)[: 3 - used]
    choice = act.Admission(pins.device[:used], (), fresh)
    machine.check(state, act.Admit(0, choice))
    admitted = machine.step(state, act.Admit(0, choice))
    assert sum(admitted.device.refs) == len(choice.device) + len(fresh)


@BOTH
def test_a_repeated_key_is_stored_once_and_loaded_into_each_of_its_positions(contract: Contract) -> None:
    scope = Scope(device_blocks=2, host_blocks=2, workers=1, prompts=("aa", "bb"), repeats=True)
    evicted = (
        *('submit x "aa"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
        *("preempt x", 'submit y "bb"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store"),
        *("report w0 job 1", "finish y"),
    )
    _, state = state_after(contract, scope, *evicted[:7])
    assert state.host.keys.count(1) == 1
    _, state = state_after(contract, scope, *evicted, "admit x")
    (load,) = state.jobs
    source = state.host.keys.index(1)
    assert [pair.source for pair in load.pairs] == [source, source]
    assert len({pair.destination for pair in load.pairs}) == 2
    assert state.host.refs[source] == 2
    _, state = state_after(contract, scope, *evicted, "admit x", "launch", "run w0 load", "report w0 job 2")
    assert state.device.keys.count(1) == 1
    assert state.host.refs == (0, 0)


@PARTIAL
def test_a_partial_admission_takes_one_block_where_nothing_is_cached(contract: Contract) -> None:
    """And the request grows to the end of its prompt, which it computes block by block."""
    scope = HALVES._replace(lookups=False)
    admitted = ('submit x "ab"', "admit x")
    assert seen(contract, scope, *admitted)["device"] == "1 0"
    grown = (*admitted, "launch", "run w0 compute", "handle output", "grow x")
    assert seen(contract, scope, *grown)["device"].split()[1] == "1"
    assert "finish x" not in offered(contract, scope, *grown)
    assert "finish x" in offered(contract, scope, *grown, "launch", "run w0 compute", "handle output")


@PARTIAL
def test_a_partial_admission_takes_what_it_loads_and_no_more(contract: Contract) -> None:
    """z finds its first block on the host: it loads that into one of the three free blocks, and has no other."""
    scope = HALVES._replace(lookups=False, device_blocks=3, host_blocks=4, prompts=("a", "def", "abc"))
    stored = ("launch", "run w0 compute", "handle output", "run w0 store")
    evicted = (
        *('submit x "a"', "admit x", *stored, "report w0 job 0", "finish x", 'submit y "def"', "admit y", *stored),
        *("report w0 job 1", "grow y", "launch", "run w0 compute", "handle output", "grow y", "preempt y"),
    )
    _, state = state_after(contract, scope, *evicted, 'submit z "abc"', "admit z")
    assert state.device.keys.count(1) == 0
    assert (state.requests[2].phase, len(state.requests[2].table)) == (LOADING, 1)
    assert [pair.key for pair in state.jobs[-1].pairs] == [1]


@PARTIAL
def test_whoever_wants_a_block_comes_before_lookups_and_admissions(contract: Contract) -> None:
    """Two halves of two: y gives way, and is neither looked up nor admitted before x has grown."""
    assert "preempt under pressure" in offered(contract, HALVES, *EACH_HAS_A_PART)
    gave_way = offered(contract, HALVES, *EACH_HAS_A_PART, "preempt under pressure")
    assert "grow x" in gave_way
    assert "lookup y" not in gave_way
    assert "admit y" not in gave_way
    grown = offered(contract, HALVES, *EACH_HAS_A_PART, "preempt under pressure", "grow x")
    assert "lookup y" in grown


@BOTH
def test_admission_takes_hits_first_and_the_least_recently_used_blocks_for_the_rest(contract: Contract) -> None:
    machine, state = state_after(contract, AB_AC, *X_SERVED, 'submit y "ac"', "admit y")
    shared = state.device.keys.index(1)
    assert state.requests[1].phase == RUNNING
    assert state.requests[1].table[0] == shared
    assert state.requests[1].computed == 1
    assert [machine.setting.key_names[key - 1] for key in state.device.keys if key] == ["a", "ab"]


@BOTH
def test_what_only_the_host_has_is_loaded(contract: Contract) -> None:
    _, state = state_after(contract, RELOAD, *Z_WAITS, "admit z")
    request, (job,) = state.requests[2], state.jobs
    assert request.phase == LOADING
    assert request.computed == 0
    assert request.jobs == (job.id,) == (2,)
    assert (job.direction, job.view, job.request) == (LOAD, LIVE, 2)
    assert [pair.key for pair in job.pairs] == [1, 2]
    assert [pair.destination for pair in job.pairs] == list(request.table)


def test_a_load_owns_both_sides_under_pinning_and_its_sources_under_fencing() -> None:
    assert seen(PINNING, RELOAD, *Z_WAITS, "admit z")["device"] == "2 2"
    assert seen(FENCING, RELOAD, *Z_WAITS, "admit z")["device"] == "1 1"
    assert seen(PINNING, RELOAD, *Z_WAITS, "admit z")["host"] == "1 1 0 0"
    assert seen(FENCING, RELOAD, *Z_WAITS, "admit z")["host"] == "1 1 0 0"


@BOTH
def test_a_loaded_request_runs_when_it_is_woken(contract: Contract) -> None:
    loaded = (*Z_WAITS, "admit z", "launch", "run w0 load", "report w0 job 2")
    _, state = state_after(contract, RELOAD, *loaded)
    assert state.requests[2].phase == LOADING
    assert state.requests[2].computed == 2
    assert "wake z" in offered(contract, RELOAD, *loaded)
    assert "wake z" not in offered(contract, RELOAD, *loaded[:-1])
    _, woken = state_after(contract, RELOAD, *loaded, "wake z")
    assert woken.requests[2].phase == RUNNING


@BOTH
def test_a_lookup_keeps_what_it_found_until_the_admission(contract: Contract) -> None:
    """vLLM PR 42289: y takes every block that is not pinned, and z still finds its prefix on the host."""
    scope = RELOAD._replace(host_blocks=2, prompts=("ab", "cd", "a"), lookups=True)
    commands = (
        *(*X_SERVED, 'submit z "a"'),
        *('submit y "cd"', "lookup y", "admit y", "lookup z"),
    )
    assert seen(contract, scope, *commands)["found"] == "z - | a"
    after = seen(contract, scope, *commands, "launch")
    assert after["host"] == "1 1"
    assert after["on_host"] == "a"
    assert after["found"] == "z - | a"


@BOTH
def test_a_repeated_lookup_holds_one_reference(contract: Contract) -> None:
    """vLLM issue 39702."""
    twice = (*X_SERVED, 'submit y "ac"', "lookup y", "lookup y")
    assert seen(contract, AB_AC, *twice)["device"] == "1 0 0"
    assert seen(contract, AB_AC, *twice, "release the lookup of y")["device"] == "0 0 0"
    assert seen(contract, AB_AC, *twice, "abort y")["device"] == "0 0 0"
    assert seen(contract, AB_AC, *twice, "admit y")["device"] == "1 1 0"


@BOTH
def test_a_lookup_that_found_nothing_is_a_lookup(contract: Contract) -> None:
    _, state = state_after(contract, AB_AC, 'submit x "ab"', "lookup x")
    assert state.requests[0].pins == Pins((), ())


def test_a_request_with_stores_of_its_own_outstanding_is_deferred_under_fencing() -> None:
    """vLLM PR 46231. Under pinning nobody waits for stores."""
    scope = AB_AC._replace(lookups=True)
    preempted = ('submit x "ab"', "lookup x", "admit x", "launch", "run w0 compute", "handle output", "preempt x")
    assert "lookup x" in offered(PINNING, scope, *preempted)
    assert "lookup x" not in offered(FENCING, scope, *preempted)
    assert "lookup x" in offered(FENCING, scope, *preempted, "run w0 store", "report w0 job 0")


DECODING = Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("a", "b"), decode=1)
SHORT = DECODING._replace(device_blocks=2)
BOTH_RUN = ('submit x "a"', 'submit y "b"', "admit x", "admit y", "launch", "run w0 compute", "handle output")


@BOTH
def test_a_request_grows_when_all_it_has_is_computed(contract: Contract) -> None:
    one = ('submit x "a"', "admit x")
    assert "grow x" not in offered(contract, DECODING, *one)
    assert "grow x" not in offered(contract, DECODING, *one, "launch", "run w0 compute")
    computed = (*one, "launch", "run w0 compute", "handle output")
    assert "grow x" in offered(contract, DECODING, *computed)
    assert "grow x" not in offered(contract, DECODING, *computed, "grow x")
    assert "finish x" not in offered(contract, DECODING, *computed)
    end = (*computed, "grow x", "launch", "run w0 compute", "handle output")
    assert "finish x" in offered(contract, DECODING, *end)


@BOTH
def test_growing_comes_before_admissions(contract: Contract) -> None:
    """Otherwise the block that a preemption freed goes back to the one preempted, for ever."""
    growing = ('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", 'submit y "b"')
    assert "admit y" not in offered(contract, DECODING, *growing)
    assert "admit y" in offered(contract, DECODING, *growing, "grow x")


def test_pressure_preempts_the_last_one_behind_the_grower() -> None:
    """x and y have no third block to grow into. Under pinning the store of `b` keeps y's block all the same."""
    assert "preempt under pressure" not in offered(PINNING, DECODING, *BOTH_RUN)
    assert "preempt under pressure" in offered(PINNING, SHORT, *BOTH_RUN)
    for contract, held in ((PINNING, "2 1"), (FENCING, "1 0")):
        after = seen(contract, SHORT, *BOTH_RUN, "preempt under pressure")
        assert (after["requests"], after["device"]) == ("RUNNING WAITING", held)


@BOTH
def test_a_later_request_never_preempts_an_earlier_one(contract: Contract) -> None:
    """x has all that it needs; y waits until it is done."""
    x_has_grown = (*BOTH_RUN, "grow x")
    scope = DECODING._replace(device_blocks=3)
    assert seen(contract, scope, *x_has_grown)["device"] == ("2 2 1" if contract.pins else "1 1 1")
    assert "preempt under pressure" not in offered(contract, scope, *x_has_grown)


@BOTH
def test_nobody_is_preempted_whose_blocks_a_launched_step_still_writes(contract: Contract) -> None:
    """vLLM PR 49675: nothing would become free."""
    scope = DECODING._replace(device_blocks=2)
    one_in_step = (
        *('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
        *('submit y "b"', "preempt x", "admit y", "admit x", "launch"),
    )
    assert seen(contract, scope, *one_in_step)["device"] == ("2 1" if contract.pins else "1 1")
    assert "preempt under pressure" not in offered(contract, scope, *one_in_step)
    assert "preempt under pressure" in offered(contract, scope, *one_in_step, "run w0 compute", "handle output")


@pytest.mark.parametrize("way", ["preempt x", "abort x"])
@BOTH
def test_the_blocks_of_a_launched_step_stay_until_its_output_is_handled(contract: Contract, way: str) -> None:
    """vLLM PR 45357. The output changes nothing else."""
    launched = ('submit x "ab"', "admit x", "launch", way)
    held = "2 2 0" if contract.pins else "1 1 0"
    assert seen(contract, AB_AC, *launched)["device"] == held
    assert seen(contract, AB_AC, *launched, "run w0 compute")["device"] == held
    after = seen(contract, AB_AC, *launched, "run w0 compute", "handle output")
    assert after["device"] == ("1 1 0" if contract.pins else "0 0 0")
    assert after["on_device"] == ""


def test_an_aborted_load_is_abandoned_under_pinning_and_drains_under_fencing() -> None:
    launched = (*Z_WAITS, "admit z", "launch", "abort z")
    _, pinning = state_after(PINNING, RELOAD, *launched)
    assert pinning.requests[2].phase == DONE
    assert pinning.jobs[0].view == ABANDONED
    assert pinning.device.refs == (1, 1)
    _, fencing = state_after(FENCING, RELOAD, *launched)
    assert fencing.requests[2].phase == DRAINING
    assert fencing.jobs[0].view == ABANDONED
    assert fencing.device.refs == (1, 1)
    _, drained = state_after(FENCING, RELOAD, *launched, "run w0 load", "report w0 job 2")
    assert drained.requests[2].phase == DONE
    assert drained.device.refs == (0, 0)


def test_a_preempted_load_waits_again_and_drains_first_under_fencing() -> None:
    launched = (*Z_WAITS, "admit z", "launch", "preempt z")
    assert seen(PINNING, RELOAD, *launched)["requests"] == "DONE DONE WAITING"
    assert seen(FENCING, RELOAD, *launched)["requests"] == "DONE DONE DRAINING"
    drained = seen(FENCING, RELOAD, *launched, "run w0 load", "report w0 job 2")
    assert drained["requests"] == "DONE DONE WAITING"
    assert drained["on_device"] == ""
    aborted = seen(FENCING, RELOAD, *launched, "abort z", "run w0 load", "report w0 job 2")
    assert aborted["requests"] == "DONE DONE DONE"


@pytest.mark.parametrize("way", ["preempt z", "abort z"])
@BOTH
def test_a_load_that_was_not_launched_is_cancelled(contract: Contract, way: str) -> None:
    after = seen(contract, RELOAD, *Z_WAITS, "admit z", way)
    assert (after["jobs"], after["device"], after["host"]) == ("", "0 0", "0 0 0 0")


@BOTH
def test_an_outstanding_store_goes_on_when_its_request_ends(contract: Contract) -> None:
    ended = seen(contract, AB_AC, *X_HANDLED, "finish x")
    assert ended["jobs"] == "0 store LIVE w0"
    assert ended["waits_for"] == ""
    assert seen(contract, AB_AC, *X_HANDLED, "finish x", "run w0 store", "report w0 job 0")["on_host"] == "a ab"


@BOTH
def test_a_request_that_ended_offers_nothing(contract: Contract) -> None:
    scope = AB_AC._replace(prompts=("ab",), resets=0)
    machine, state = state_after(contract, scope, *X_SERVED)
    assert state.requests[0].phase == DONE
    assert machine.actions(state) == []


@BOTH
def test_switches_of_the_scope(contract: Contract) -> None:
    """Without aborts, preemptions and resets; and with lookups, admission needs one."""
    quiet = AB_AC._replace(aborts=False, preempts=False, resets=0, lookups=True)
    assert offered(contract, quiet, 'submit x "ab"') == ["lookup x", 'submit y "ac"']
    looked_up = offered(contract, quiet, 'submit x "ab"', "lookup x")
    assert looked_up == ["lookup x", "release the lookup of x", "admit x", 'submit y "ac"']
    assert offered(contract, quiet, *X_HANDLED) == ["run w0 store", "finish x", 'submit y "ac"']


def test_actions_of_different_classes_may_be_equal_and_their_keys_are_not() -> None:
    """Whoever puts actions into one set uses `key`."""
    assert act.Wake(2) == act.Abort(2)
    assert act.key(act.Wake(2)) != act.key(act.Abort(2))
