"""A worker dies. Without a deadline its share of the work hangs where everybody sees it, and nothing is corrupted; with
one everything that needs it ends as a failure, which is everything."""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning")
FENCING = Contract("fencing")
PINNING_UNTIL = Contract("pinning", deadline="expire")
FENCING_UNTIL = Contract("fencing", deadline="expire")

TWO = Scope(device_blocks=4, host_blocks=2, workers=2, prompts=("ab", "cd"), resets=2, deaths=1)
SERVED = given('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output", "finish x")


@case(PINNING, scope=TWO)
def test_it_dies_before_its_compute() -> Steps:
    """The output never comes, whatever the other has done: nothing is published, and the aborted request's blocks stay
    with the step."""
    return (
        *given('submit x "ab"', "admit x", "launch"),
        Step("w1 dies", may_run="w0 compute"),
        Step("run w0 compute", may_run="w0 store"),
        Step("handle output", refused="NotRunnable"),
        Step("abort x", requests="DONE", on_device="", device="2 2 0 0"),
        *given('submit y "cd"', "admit y"),
        Step("reset invalidate", answer=False, requests="DONE WAITING", device="2 2 0 0", host="1 1"),
    )


@case(PINNING, scope=TWO)
def test_it_dies_before_its_store() -> Steps:
    """The store awaits it for ever and keeps its blocks; what is hit on the device still is, and computes nothing."""
    return (
        *SERVED,
        Step("w1 dies", jobs="0 store LIVE w0 w1", may_run="w0 store"),
        *given("run w0 store"),
        Step("report w0 job 0", jobs="0 store LIVE w1", on_host="", device="1 1 0 0", host="1 1"),
        Step("report w1 job 0", refused="UnknownJob"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w1", on_device="", host="1 1"),
    )


@case(FENCING, scope=TWO)
def test_it_dies_before_its_store_under_fencing() -> Steps:
    """A reset takes the store's blocks. The living worker waits for its own copy, and not for the dead one's."""
    return (
        *SERVED,
        Step("w1 dies", jobs="0 store LIVE w0 w1", may_run="w0 store"),
        Step("reset invalidate", answer=True, jobs="", device="0 0 0 0", host="0 0"),
        *given('submit y "cd"', "admit y"),
        Step("launch", jobs="1 store LIVE w0 w1", may_run="w0 store"),
        Step("run w0 store", may_run="w0 compute"),
        *given("run w0 compute"),
        Step("handle output", refused="NotRunnable"),
    )


@case(PINNING, scope=TWO)
def test_it_dies_after_it_has_reported() -> Steps:
    """It is missed by nothing: the store is complete when the other has reported it too."""
    return (
        *SERVED,
        *given("run w1 store", "report w1 job 0"),
        Step("w1 dies", jobs="0 store LIVE w0"),
        *given("run w0 store"),
        Step("report w0 job 0", jobs="", on_host="a ab", device="0 0 0 0", host="0 0"),
        Step("reset invalidate", answer=True),
    )


@case(PINNING_UNTIL, scope=TWO)
def test_it_dies_and_is_declared_dead() -> Steps:
    """One request is in a launched step and another waits: both end, nothing is held, and the living one's late report
    is absorbed."""
    return (
        *SERVED,
        *given('submit y "cd"', "admit y", "launch", "run w0 store", "w1 dies"),
        Step("declare w1 dead", requests="DONE DONE", on_device="", on_host="", device="0 0 0 0", host="0 0"),
        Step("report w0 job 0", on_host="", device="0 0 0 0", host="0 0"),
        Step("declare w1 dead", refused="ShutDown"),
        Step("handle output", refused="NotRunnable"),
        Step("reset invalidate", answer=True),
    )


@case(FENCING_UNTIL, scope=TWO)
def test_it_dies_and_is_declared_dead_under_fencing() -> Steps:
    return (
        *SERVED,
        *given("w1 dies"),
        Step("declare w1 dead", on_device="", on_host="", device="0 0 0 0", host="0 0", may_run="w0 store"),
        Step('submit y "cd"', refused="ShutDown"),
        *given("run w0 store"),
        Step("report w0 job 0", on_host="", host="0 0"),
    )
