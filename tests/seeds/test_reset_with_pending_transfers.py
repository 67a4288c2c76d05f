"""Resets while transfers are pending: the three scenarios of vLLM PR 39726 under their names there, and their likes.

Under pinning the reset answers False, every reference of a pending transfer stays, its completion publishes nothing,
and when all are drained the next reset answers True on an engine whose pools are empty. Under fencing the reset takes
everything at once and answers True; the copies that still run are told apart from their successors by the fence.
"""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning")
FENCING = Contract("fencing")

SMALL = Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("ab", "ab"), resets=3)

COMPUTED = given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")
"""x has computed its two blocks, which can be hit; under eager stores job 0 is to copy them to the host."""

NOTHING_IS_HIT = (
    Step('submit y "ab"'),
    Step("lookup y", found="y - | -", device="0 0 0 0", host="0 0 0 0"),
    Step("admit y", device="1 1 0 0", jobs="", requests="WAITING RUNNING"),
)
"""The device's prefix cache and the host's are really reset: the same prompt is computed afresh, nothing is loaded."""


@case(PINNING, scope=SMALL)
def test_reset_pending_eager_stores() -> Steps:
    """PR 39726, test 12: reset() abandons in-flight stores until they complete."""
    return (
        *given('submit x "ab"', "admit x"),
        Step("launch", jobs="0 store LIVE w0", device="2 2 0 0", host="1 1 0 0"),
        *given("run w0 compute"),
        Step("handle output", on_device="a ab"),
        Step("preempt x", device="1 1 0 0"),
        Step(
            "reset invalidate",
            answer=False,
            jobs="0 store ABANDONED w0",
            on_device="",
            device="1 1 0 0",
            host="1 1 0 0",
        ),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0", device="1 1 0 0", host="1 1 0 0"),
        Step("run w0 store", device="1 1 0 0", host="1 1 0 0"),
        Step("report w0 job 0", jobs="", on_host="", device="0 0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
        *NOTHING_IS_HIT,
    )


@case(PINNING._replace(store_mode="lazy"), scope=SMALL)
def test_reset_pending_lazy_stores() -> Steps:
    """PR 39726: the same for lazy stores, which pin free blocks of no request."""
    return (
        *COMPUTED,
        Step("finish x", jobs="", device="0 0 0 0", on_device="a ab"),
        Step("launch", jobs="0 store LIVE w0", device="1 1 0 0", host="1 1 0 0"),
        Step(
            "reset invalidate",
            answer=False,
            jobs="0 store ABANDONED w0",
            on_device="",
            device="1 1 0 0",
            host="1 1 0 0",
        ),
        Step("run w0 store", device="1 1 0 0", host="1 1 0 0"),
        Step("report w0 job 0", jobs="", on_host="", device="0 0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
        Step('submit y "ab"'),
        Step("lookup y", found="y - | -", device="0 0 0 0", host="0 0 0 0"),
        Step("admit y", device="1 1 0 0", jobs="", requests="DONE RUNNING"),
    )


LOADING = Scope(device_blocks=2, host_blocks=4, workers=1, prompts=("ab", "cd", "ab"), resets=3)

ONLY_ON_THE_HOST = given(
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 0", "finish x"),
    *('submit y "cd"', "admit y", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 1", "finish y"),
    'submit z "ab"',
)
"""x has left `a` and `ab` on the host, y has evicted them from the device, and z asks for them."""


@case(PINNING, scope=LOADING)
def test_reset_pending_loads() -> Steps:
    """PR 39726: the same for loads. The request waits again, and an old wake does not wake it."""
    return (
        *ONLY_ON_THE_HOST,
        Step("lookup z", found="z - | a ab", host="1 1 0 0", on_host="a ab c cd"),
        Step("admit z", jobs="2 load LIVE w0", waits_for="z 2", device="2 2", host="1 1 0 0"),
        Step("launch", may_run="w0 load"),
        Step(
            "reset invalidate",
            answer=False,
            jobs="2 load ABANDONED w0",
            requests="DONE DONE WAITING",
            waits_for="",
            device="1 1",
            host="1 1 0 0",
            on_host="",
        ),
        Step("admit z", refused="OutOfBlocks"),
        Step("run w0 load", device="1 1", host="1 1 0 0"),
        Step("report w0 job 2", jobs="", on_device="", device="0 0", host="0 0 0 0", requests="DONE DONE WAITING"),
        Step("wake z", refused="WrongPhase"),
        Step("reset invalidate", answer=True),
        Step("lookup z", found="z - | -"),
        Step("admit z", jobs="", requests="DONE DONE RUNNING", kv="z -ab -a"),
        Step("launch", jobs="3 store LIVE w0"),
        Step("run w0 compute", kv="z a ab"),
    )


@case(PINNING, scope=SMALL._replace(workers=2))
def test_reset_pending_stores_of_two_workers() -> Steps:
    """One worker's report is not the other's: the reset stays False until both are in."""
    return (
        *given('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output", "preempt x"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0 w1"),
        *given("run w0 store"),
        Step("report w0 job 0", jobs="0 store ABANDONED w1", device="1 1 0 0", host="1 1 0 0"),
        Step("reset invalidate", answer=False),
        *given("run w1 store"),
        Step("report w1 job 0", jobs="", on_host="", device="0 0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
    )


@case(PINNING, FENCING, scope=LOADING)
def test_reset_cancels_a_load_that_was_never_launched() -> Steps:
    """No worker knows of a queued load: its references go at once, and nothing stands in the way of the answer."""
    return (
        *ONLY_ON_THE_HOST,
        Step("admit z", jobs="2 load LIVE w0", host="1 1 0 0"),
        Step("reset invalidate", answer=True, jobs="", waits_for="", device="0 0", host="0 0 0 0"),
        Step("admit z", jobs="", requests="DONE DONE RUNNING"),
    )


@case(FENCING, scope=SMALL)
def test_reset_pending_eager_stores_under_fencing() -> Steps:
    """PR 41956: the job is forgotten at once; whoever reuses its blocks waits for its copy, and its report is stale."""
    return (
        *COMPUTED,
        Step("preempt x", device="0 0 0 0", host="1 1 0 0"),
        Step(
            "reset invalidate", answer=True, jobs="", on_device="", device="0 0 0 0", host="0 0 0 0", may_run="w0 store"
        ),
        *NOTHING_IS_HIT,
        Step("launch", jobs="1 store LIVE w0", may_run="w0 store"),
        Step("run w0 store", may_run="w0 compute"),
        Step("report w0 job 0", on_host="", device="1 1 0 0", host="1 1 0 0", jobs="1 store LIVE w0"),
        Step("run w0 compute", kv="y a ab"),
    )


@case(FENCING._replace(store_mode="lazy"), scope=SMALL)
def test_reset_pending_lazy_stores_under_fencing() -> Steps:
    """The sources of a lazy store are free blocks: only the fence keeps a compute from overwriting them."""
    return (
        *COMPUTED,
        *given("finish x"),
        Step("launch", jobs="0 store LIVE w0", device="0 0 0 0", host="1 1 0 0"),
        Step("reset invalidate", answer=True, jobs="", device="0 0 0 0", host="0 0 0 0"),
        *given('submit y "ab"', "admit y"),
        Step("launch", may_run="w0 store"),
        Step("run w0 store", may_run="w0 compute"),
        Step("report w0 job 0", on_host="", host="0 0 0 0"),
        Step("run w0 compute", kv="y a ab"),
    )


@case(FENCING, scope=LOADING)
def test_reset_pending_loads_under_fencing() -> Steps:
    """The load is forgotten, its request is scheduled again at once, into blocks that the old load still writes."""
    return (
        *ONLY_ON_THE_HOST,
        *given("admit z", "launch"),
        Step("reset invalidate", answer=True, jobs="", waits_for="", device="0 0", host="0 0 0 0", on_host=""),
        Step("lookup z", found="z - | -"),
        Step("admit z", device="1 1", requests="DONE DONE RUNNING"),
        Step("launch", jobs="3 store LIVE w0", may_run="w0 load"),
        Step("run w0 load", may_run="w0 compute"),
        Step("run w0 compute", kv="z a ab"),
        Step("report w0 job 2", on_device="", on_host="", device="1 1", host="1 1 0 0"),
        Step("handle output", on_device="a ab"),
    )
