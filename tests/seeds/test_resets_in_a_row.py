"""Resets one after another, with and without a drain between (a risk that the report on PR 39726 names)."""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning")
FENCING = Contract("fencing")

ONE = Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("ab",), resets=7, meanings=("invalidate", "evict"))

STORE_IN_FLIGHT = given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")


@case(PINNING, scope=ONE)
def test_resets_without_a_drain_between() -> Steps:
    """Each abandons what has come since, and none forgets what an earlier one abandoned: all reports are awaited."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0", device="1 1 0 0", host="1 1 0 0"),
        Step("reset evict", answer=False, jobs="0 store ABANDONED w0", device="1 1 0 0", host="1 1 0 0"),
        *given("admit x", "launch"),
        Step(
            "reset invalidate",
            answer=False,
            jobs="0 store ABANDONED w0, 1 store ABANDONED w0",
            device="2 2 1 1",
            host="1 1 1 1",
        ),
        Step(
            "reset invalidate",
            answer=False,
            jobs="0 store ABANDONED w0, 1 store ABANDONED w0",
            device="2 2 1 1",
            host="1 1 1 1",
        ),
        *given("run w0 store", "run w0 compute"),
        Step("handle output", on_device="", device="1 1 1 1"),
        *given("run w0 store"),
        Step("report w0 job 1", jobs="0 store ABANDONED w0", device="1 1 0 0", host="1 1 0 0"),
        Step("reset invalidate", answer=False),
        Step("report w0 job 0", jobs="", on_host="", device="0 0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
        Step("reset evict", answer=True),
    )


@case(PINNING, scope=ONE)
def test_resets_with_a_drain_between() -> Steps:
    """False, drained, True; and the same again with the next generation's job, whose id is a new one."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset invalidate", answer=False),
        *given("run w0 store"),
        Step("report w0 job 0", jobs="", device="0 0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
        *given("admit x"),
        Step("launch", jobs="1 store LIVE w0"),
        *given("run w0 compute", "handle output"),
        Step("reset invalidate", answer=False, jobs="1 store ABANDONED w0"),
        *given("run w0 store"),
        Step("report w0 job 1", jobs="", on_host="", device="0 0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
        Step("reset invalidate", answer=True),
    )


@case(FENCING, scope=ONE)
def test_resets_without_a_drain_between_under_fencing() -> Steps:
    """A second reset straight after is as legal as the first. Copies of both generations run behind the fence."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset invalidate", answer=True, jobs="", device="0 0 0 0", host="0 0 0 0", may_run="w0 store"),
        Step("reset invalidate", answer=True, may_run="w0 store"),
        *given("admit x"),
        Step("launch", jobs="1 store LIVE w0", may_run="w0 store"),
        Step("reset invalidate", answer=True, jobs="", waits_for="", device="1 1 0 0", host="0 0 0 0"),
        Step("reset evict", answer=True, device="1 1 0 0"),
        Step("run w0 store", may_run="w0 compute"),
        Step("run w0 compute", may_run="w0 store"),
        Step("handle output", on_device="", device="0 0 0 0"),
        *given("run w0 store"),
        Step("report w0 job 1", on_host="", host="0 0 0 0"),
        Step("report w0 job 0", on_host="", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
        *given("admit x"),
        Step("launch", jobs="2 store LIVE w0", may_run="w0 compute"),
    )


@case(FENCING, scope=ONE)
def test_resets_with_a_drain_between_under_fencing() -> Steps:
    """The threshold of stale jobs moves on with every reset; ids are never rewound."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset invalidate", answer=True),
        *given("run w0 store"),
        Step("report w0 job 0", on_host=""),
        Step("reset invalidate", answer=True),
        *given("admit x"),
        Step("launch", jobs="1 store LIVE w0", may_run="w0 compute"),
        *given("run w0 compute", "handle output", "run w0 store"),
        Step("report w0 job 1", on_host="a ab", jobs=""),
        Step("reset invalidate", answer=True, on_host="", on_device=""),
        *given("admit x"),
        Step("launch", jobs="2 store LIVE w0", may_run="w0 compute"),
    )


@case(PINNING, FENCING, scope=ONE)
def test_resets_of_an_engine_that_never_served() -> Steps:
    """Nothing is held and nothing is cached: the first reset is as true as the last."""
    return (
        Step("reset invalidate", answer=True, device="0 0 0 0", host="0 0 0 0"),
        Step("reset evict", answer=True),
        Step("reset invalidate", answer=True),
    )
