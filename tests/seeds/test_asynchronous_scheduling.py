"""Asynchronous scheduling (depth 2): the next step is launched before the output of the one before it is handled.

Lazy stores keep out of the way: all references on the device are those of requests and of launched steps.
"""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning", "lazy", depth=2)
FENCING = Contract("fencing", "lazy", depth=2)

SCOPE = Scope(
    device_blocks=3, host_blocks=1, workers=1, prompts=("a", "b"), decode=1, survivors=True, stops=True, resets=1
)

X_IN_TWO_STEPS = given('submit x "a"', "admit x", "launch", "grow x", "launch")


@case(PINNING, FENCING, scope=SCOPE)
def test_preempted_while_two_steps_compute_for_it() -> Steps:
    """vLLM PR 45357. Each step keeps the blocks that it uses until its own output is handled, which changes nothing
    else; y gets the third block and no other."""
    return (
        *X_IN_TWO_STEPS,
        Step("preempt x", requests="WAITING", device="2 1 0"),
        *given('submit y "b"'),
        Step("admit y", requests="WAITING RUNNING", device="2 1 1"),
        Step("launch", refused="NothingToLaunch"),
        Step("run w0 compute", device="2 1 1"),
        Step("handle output", device="1 1 1", on_device=""),
        Step("launch", may_run="w0 compute"),
        *given("run w0 compute"),
        Step("handle output", device="1 0 0", on_device="", kv="y ?"),
        *given("run w0 compute"),
        Step("handle output", device="1 0 0", on_device="b", kv="y b"),
    )


@case(PINNING, FENCING, scope=SCOPE)
def test_stopped_by_an_output_while_the_next_step_computes_for_it() -> Steps:
    """A stop token. The next step was launched on the assumption that x would go on; its output publishes nothing."""
    return (
        *X_IN_TWO_STEPS,
        Step("stop x", refused="WrongPhase"),
        Step("run w0 compute", on_device=""),
        Step("handle output", on_device="a", device="1 1 0"),
        Step("stop x", requests="DONE", device="1 1 0"),
        Step("run w0 compute", device="1 1 0"),
        Step("handle output", on_device="a", device="0 0 0"),
    )


@case(PINNING, FENCING, scope=SCOPE._replace(device_blocks=2))
def test_pressure_preempts_nobody_who_frees_nothing() -> Steps:
    """vLLM PR 49675: x wants a block, and y is in the launched step, which would keep y's; so y goes on."""
    return (
        *given('submit x "a"', 'submit y "b"', "admit x", "admit y"),
        Step("launch", requests="RUNNING RUNNING", device="1 1"),
        Step("preempt under pressure", requests="RUNNING RUNNING", device="1 1"),
        *given("run w0 compute", "handle output"),
        Step("preempt under pressure", requests="RUNNING WAITING", device="1 0"),
        Step("preempt under pressure", requests="RUNNING WAITING", device="1 0"),
        Step("grow x", device="1 1"),
        *given("launch", "run w0 compute"),
        Step("handle output", on_device="a a+1"),
        Step("finish x", requests="DONE WAITING", device="0 0"),
        Step("admit y", requests="DONE RUNNING"),
    )


@case(PINNING, FENCING, scope=SCOPE)
def test_a_reset_while_a_survivor_is_in_two_steps() -> Steps:
    """The weights changed between the two computes: what both write is of the old ones, and neither is published."""
    return (
        *X_IN_TWO_STEPS,
        Step("run w0 compute", kv="x a ?"),
        Step("reset invalidate, survivors kept", answer=False, kv="x -a ?", requests="RUNNING"),
        Step("handle output", on_device=""),
        Step("run w0 compute", kv="x -a -a+1"),
        Step("handle output", on_device="", device="1 1 0"),
        Step("finish x", requests="DONE", device="0 0 0"),
    )


@case(PINNING, FENCING, scope=SCOPE)
def test_admitted_again_while_a_step_still_computes_for_its_last_life() -> Steps:
    """The older output is that of the last life and changes nothing; the younger one is that of the new life."""
    return (
        *given('submit x "a"', "admit x", "launch", "preempt x"),
        Step("admit x", requests="RUNNING", device="1 1 0"),
        Step("launch", may_run="w0 compute"),
        *given("run w0 compute"),
        Step("handle output", on_device="", device="1 0 0", kv="x ?"),
        *given("run w0 compute"),
        Step("handle output", on_device="a", device="1 0 0", kv="x a"),
    )
