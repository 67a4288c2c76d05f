"""Depth 2: step N + 1 is launched before the output of step N is handled, and a request may be in both."""

from collections.abc import Iterator

import pytest
from tests.seeds.driving import facts, state_after

from kvmodel import Contract, Forbidden, Machine, Scope, State
from kvmodel import actions as act
from kvmodel.launched_step import Share
from kvmodel.request import DONE, RUNNING, WAITING
from kvmodel.streams import COMPUTE, LOAD, STORE
from kvproof.search.graph import Graph
from kvproof.targets.command import describe
from kvproof.targets.view import ShareView, expected
from kvproof.targets.wording import command_of

PINNING, FENCING = Contract("pinning", depth=2), Contract("fencing", depth=2)
BOTH = pytest.mark.parametrize("contract", [PINNING, FENCING], ids=["pinning", "fencing"])

DECODING = Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("a", "b"), decode=2, meanings=("evict",))
STOPPING = DECODING._replace(stops=True)
"""Every request has three blocks: one of its prompt, and two that it decodes."""

IN_ONE = ('submit x "a"', "admit x", "launch")
IN_TWO = (*IN_ONE, "grow x", "launch")


def offered(contract: Contract, scope: Scope, *commands: str) -> list[str]:
    machine, state = state_after(contract, scope, *commands)
    return [describe(command_of(action), scope) for action in machine.actions(state)]


def seen(contract: Contract, scope: Scope, *commands: str) -> dict[str, str]:
    machine, state = state_after(contract, scope, *commands)
    return facts(machine.setting, expected(state))


def check(machine: Machine, state: State, action: act.Action) -> str:
    """Why an action is forbidden, or nothing."""
    try:
        machine.check(state, action)
    except Forbidden as forbidden:
        return f"{forbidden.rule}: {forbidden.why}"
    return ""


@BOTH
def test_the_next_step_is_launched_before_an_output_is_handled_and_the_one_after_it_is_not(contract: Contract) -> None:
    assert "grow x" in offered(contract, DECODING, *IN_ONE)
    assert "launch" in offered(contract, DECODING, *IN_ONE, "grow x")
    machine, state = state_after(contract, DECODING, *IN_TWO)
    assert [step.shares for step in state.steps] == [(Share(0, (0,), 0),), (Share(0, (0, 1), 1),)]
    assert state.requests[0].computed == 0
    assert "grow x" not in offered(contract, DECODING, *IN_TWO)
    for pending in ("launch", "finish x"):
        assert pending not in offered(contract, DECODING, *IN_TWO)
    why = check(machine, state, act.Launch())
    assert why == "launch: a step is launched before the one before it is done"


@BOTH
def test_at_depth_1_neither_is_possible(contract: Contract) -> None:
    shallow = contract._replace(depth=1)
    assert "grow x" not in offered(shallow, DECODING, *IN_ONE)
    assert "launch" not in offered(shallow, DECODING, *IN_ONE, 'submit y "b"', "admit y")
    assert "launch" in offered(contract, DECODING, *IN_ONE, 'submit y "b"', "admit y")


@BOTH
def test_a_step_computes_on_what_the_one_before_it_will_have_computed(contract: Contract) -> None:
    """Another start is forbidden: the blocks before it would be computed twice, or those after it would lack them."""
    machine, state = state_after(contract, DECODING, *IN_ONE, "grow x")
    for start in (0, 1):
        launch = act.Launch(act.Launching(((0, start, 2),), (), (), ()))
        words = "launch: request 0 computes blocks 0 to 2, which are not its next ones"
        assert check(machine, state, launch) == ("" if start else words)


@BOTH
def test_outputs_are_handled_oldest_first_and_publish_what_their_own_step_computed(contract: Contract) -> None:
    both = (*IN_TWO, "run w0 compute", "run w0 compute")
    assert seen(contract, DECODING, *both)["on_device"] == ""
    _, first = state_after(contract, DECODING, *both, "handle output")
    assert [step.id for step in first.steps] == [1]
    assert (first.requests[0].computed, first.device.keys) == (1, (1, 0, 0, 0))
    _, second = state_after(contract, DECODING, *both, "handle output", "handle output")
    assert (second.requests[0].computed, second.device.keys, second.steps) == (2, (1, 3, 0, 0), ())


@BOTH
def test_both_awaited_steps_can_be_seen(contract: Contract) -> None:
    _, state = state_after(contract, DECODING, *IN_TWO)
    assert expected(state).launched == (ShareView(0, (0,), 0, False, 0), ShareView(0, (0, 1), 1, False, 1))


@BOTH
def test_an_output_may_end_a_request_that_is_in_the_next_step(contract: Contract) -> None:
    """A stop token: only the output of step 0 tells, and step 1 computes already. Its output changes nothing."""
    scope = STOPPING
    assert "stop x" not in offered(contract, scope, *IN_TWO, "run w0 compute")
    handled = (*IN_TWO, "run w0 compute", "handle output")
    assert "stop x" in offered(contract, scope, *handled)
    assert "stop x" not in offered(contract, DECODING, *handled)
    _, stopped = state_after(contract, scope, *handled, "stop x")
    assert [share.left for step in stopped.steps for share in step.shares] == [True]
    assert (stopped.requests[0].phase, stopped.requests[0].table) == (DONE, ())
    assert stopped.device.refs == ((2, 2, 0, 0) if contract.pins else (1, 1, 0, 0))
    _, ended = state_after(contract, scope, *handled, "stop x", "run w0 compute", "handle output")
    assert ended.device.refs == ((1, 1, 0, 0) if contract.pins else (0, 0, 0, 0))
    assert ended.device.keys == (1, 0, 0, 0)


@BOTH
def test_only_an_output_of_its_own_stops_a_request_and_the_last_one_finishes_it(contract: Contract) -> None:
    """At any depth; a prompt of two blocks has one output."""
    scope = DECODING._replace(prompts=("ab",), decode=1, stops=True)
    shallow = contract._replace(depth=1)
    computed = ('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")
    assert "stop x" not in offered(shallow, scope, *computed[:-1])
    assert "stop x" in offered(shallow, scope, *computed)
    machine, state = state_after(shallow, scope, *computed, "grow x", "launch", "run w0 compute", "handle output")
    assert "finish x" in [describe(command_of(action), scope) for action in machine.actions(state)]
    why = "stop: request 0 stops before an output of it, or after its last one"
    assert check(machine, state, act.Stop(0)) == why


@pytest.mark.parametrize("way", ["preempt x", "abort x", "reset evict", "stop x"])
@BOTH
def test_each_step_owns_the_blocks_of_a_request_that_left_it(contract: Contract, way: str) -> None:
    """vLLM PR 45357. x holds d0, d1 and d2; steps 0 and 1 use d0, step 1 uses d1, and nobody uses d2."""
    stores = 1 if contract.pins else 0  # of d0 with step 0, of d1 with step 1
    grown = (*IN_TWO, "run w0 compute", "handle output", "grow x", "launch", "run w0 compute")
    deeper = (*grown[:-1], way)
    _, state = state_after(contract, STOPPING, *deeper)
    pinned = (stores, stores, stores, 0)
    assert state.device.refs == tuple(count + held for count, held in zip((2, 2, 1, 0), pinned, strict=True))
    assert [share.left for step in state.steps for share in step.shares] == [True, True]
    _, one = state_after(contract, STOPPING, *deeper, "run w0 compute", "handle output")
    assert one.device.refs == tuple(count + held for count, held in zip((1, 1, 1, 0), pinned, strict=True))
    _, none = state_after(
        contract, STOPPING, *deeper, "run w0 compute", "run w0 compute", "handle output", "handle output"
    )
    assert none.device.refs == pinned
    assert none.device.keys == ((1, 0, 0, 0) if way != "reset evict" else (0, 0, 0, 0))


@BOTH
def test_a_block_that_no_launched_step_uses_is_released_at_once(contract: Contract) -> None:
    """x grew before it was preempted, and the new block is in no launch."""
    _, state = state_after(contract, DECODING, *IN_ONE, "grow x", "preempt x")
    assert state.device.refs == ((2 if contract.pins else 1), 0, 0, 0)
    assert state.device.free == (2, 3, 1)


@BOTH
def test_a_request_that_left_may_be_in_the_next_step_with_other_blocks(contract: Contract) -> None:
    again = (*IN_ONE, "reset evict", "admit x", "launch")
    _, state = state_after(contract, DECODING, *again)
    assert [step.shares for step in state.steps] == [(Share(0, (0,), 0, True),), (Share(0, (1,), 0),)]
    _, handled = state_after(contract, DECODING, *again, "run w0 compute", "handle output")
    assert (handled.requests[0].computed, handled.device.keys) == (0, (0, 0, 0, 0))
    both = (*again, "run w0 compute", "handle output", "run w0 store", "run w0 compute", "handle output")
    _, second = state_after(contract, DECODING, *both)
    assert (second.requests[0].computed, second.device.keys) == (1, (0, 1, 0, 0))


@BOTH
def test_a_survivor_goes_on_in_both_steps_and_publishes_nothing_old(contract: Contract) -> None:
    scope = DECODING._replace(meanings=("invalidate",), survivors=True)
    kept = (*IN_TWO, "run w0 compute", "reset invalidate, survivors kept", "run w0 compute")
    _, state = state_after(contract, scope, *kept, "handle output", "handle output")
    assert state.requests[0].phase == RUNNING
    assert (state.requests[0].computed, state.requests[0].outdated) == (2, True)
    assert state.device.keys == (0, 0, 0, 0)
    assert state.device_contents == ((-1, -3, 0, 0),)


@BOTH
def test_what_an_unhandled_step_computes_may_be_stored_by_the_next_launch(contract: Contract) -> None:
    """The host was full when the step was launched. The store waits for both computes, and so for the one it needs."""
    scope = DECODING._replace(host_blocks=1, decode=0, prompts=("b", "a"), resets=0)
    full = ('submit x "b"', "admit x", "launch", 'submit y "a"', "admit y", "launch")
    _, state = state_after(contract, scope, *full)
    assert [job.pairs[0].key for job in state.jobs] == [1]  # y's block finds no room
    freed = (*full, "run w0 compute", "run w0 store", "report w0 job 0")
    machine, state = state_after(contract, scope, *freed)
    assert state.requests[1].computed == 0
    assert "launch" not in [describe(command_of(action), scope) for action in machine.actions(state)]
    _, stored = state_after(contract, scope, *freed, "handle output", "launch")
    assert [(job.pairs[0].key, job.after_step) for job in stored.jobs] == [(2, 1)]
    assert act.Run(0, STORE) not in machine.actions(stored)


@BOTH
def test_a_launch_without_compute_is_no_step_that_is_awaited(contract: Contract) -> None:
    """Only stores: they go out while an output is awaited, and do not fill the pipeline."""
    scope = DECODING._replace(host_blocks=1, decode=0, prompts=("b", "a"), resets=0)
    copies_only = (
        *('submit x "b"', "admit x", "launch", 'submit y "a"', "admit y", "launch"),
        *("run w0 compute", "run w0 store", "report w0 job 0", "handle output", "launch"),
    )
    _, state = state_after(contract, scope, *copies_only)
    assert [step.id for step in state.steps] == [1]
    assert [job.id for job in state.jobs] == [1]


@BOTH
def test_a_load_runs_after_every_step_that_was_launched_before_it(contract: Contract) -> None:
    """Also after one whose output is not handled: it may be the last to read what the load overwrites (issue 47282)."""
    scope = Scope(device_blocks=2, host_blocks=4, workers=1, prompts=("a", "b", "c", "a"), resets=0)
    loading = (
        *('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
        *("finish x", 'submit y "b"', "admit y", "launch", 'submit z "c"', "admit z", "launch", "run w0 compute"),
        *("run w0 store", "report w0 job 1", "handle output", "finish y", 'submit r3 "a"', "admit r3", "launch"),
    )
    machine, state = state_after(contract, scope, *loading)
    assert [(step.id, step.ran) for step in state.steps] == [(1, (False,))]
    assert [(job.direction, job.after_step) for job in state.jobs] == [(STORE, 1), (LOAD, 1)]
    assert act.Run(0, LOAD) not in machine.actions(state)
    assert act.Run(0, LOAD) in machine.actions(machine.step(state, act.Run(0, COMPUTE)))


@BOTH
def test_pressure_preempts_nobody_who_is_in_a_launched_step(contract: Contract) -> None:
    """vLLM PR 49675: x wants a block; y is in a launched step, which would keep y's blocks."""
    scope = DECODING._replace(device_blocks=2, decode=1)
    in_steps = ('submit x "a"', 'submit y "b"', "admit x", "admit y", "launch")
    machine, state = state_after(contract, scope, *in_steps)
    assert "preempt under pressure" not in offered(contract, scope, *in_steps)
    why = "preempt: request 1 is in a launched step: preempting it frees nothing yet"
    assert check(machine, state, act.PreemptUnderPressure(1)) == why
    handled = (*in_steps, "run w0 compute", "handle output")
    assert "preempt under pressure" in offered(contract, scope, *handled)
    assert seen(contract, scope, *handled, "preempt under pressure")["requests"] == "RUNNING WAITING"


@BOTH
def test_a_worker_lags_by_one_step_behind_the_outputs_however_deep_the_pipeline_is(contract: Contract) -> None:
    """The first worker is one step ahead of what was handled, the other one step behind it: three computes wait there,
    and no more."""
    scope = DECODING._replace(workers=2)
    lagging = (*IN_TWO, "run w0 compute", "handle output", "grow x", "launch")
    machine, state = state_after(contract._replace(output_from="first"), scope, *lagging)
    assert [step.ran[1] for step in state.steps] == [False, False, False]
    assert act.Launch() not in machine.actions(state)
    state = machine.step(machine.step(state, act.Run(0, COMPUTE)), act.HandleOutput())
    request = state.requests[0]._replace(phase=WAITING)
    assert request.computed == 2
    assert check(machine, state, act.Launch()) == "launch: a step is launched before the one before it is done"
    behind = machine.step(state, act.Run(1, COMPUTE))
    assert [step.ran for step in behind.steps] == [(True, False), (False, False)]


PRESSED = Scope(
    device_blocks=3, host_blocks=1, workers=1, prompts=("a", "b"), decode=1, resets=0, aborts=False, preempts=False
)


def all_offered(contract: Contract) -> Iterator[tuple[Machine, State, act.Action]]:
    """Every action that the policy offers in any reachable state under pressure."""
    machine = Machine(contract, PRESSED)
    graph = Graph(machine)
    assert graph.explore(lambda: False, lambda said: None).finished
    for state in graph.states:
        for action in machine.actions(state):
            yield machine, state, action


@BOTH
def test_the_policy_does_nothing_that_the_contract_forbids(contract: Contract) -> None:
    """Among it that nobody is preempted under pressure without freeing a block, however often it is tried."""
    assert [words for offer in all_offered(contract) if (words := check(*offer))] == []


def test_a_policy_that_preempts_for_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM issue 49674. It corrupts nothing and ends: only the rule says that it is wrong."""
    monkeypatch.setattr("kvmodel.policy.is_preemptible", lambda state, number: state.requests[number].phase == RUNNING)
    words = {words for offer in all_offered(FENCING) if (words := check(*offer))}
    assert words == {"preempt: request 1 is in a launched step: preempting it frees nothing yet"}
