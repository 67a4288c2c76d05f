"""In-flight de-duplication: vLLM PR 41289. A key that is on its way to the host is not stored a second time, neither by
another request nor by a later step; and a reset forgets what was on its way, so that the key can be stored again."""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning")
FENCING = Contract("fencing")

SHARED_PREFIX = Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("ab", "ac"), resets=1)
SAME_PROMPT = Scope(device_blocks=4, host_blocks=6, workers=1, prompts=("ab", "ab"), resets=2)

X_ON_ITS_WAY = given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")
"""Job 0 is to store x's two blocks, and has not run."""


@case(PINNING, FENCING, scope=SHARED_PREFIX)
def test_a_block_on_its_way_is_not_stored_again_by_another_request() -> Steps:
    """PR 41289: y shares `a` with x, whose store is in flight since an earlier step; y stores `ac` alone."""
    return (
        *X_ON_ITS_WAY,
        *given('submit y "ac"', "admit y"),
        Step("launch", jobs="0 store LIVE w0, 1 store LIVE w0", host="1 1 1 0"),
        *given("run w0 store"),
        Step("report w0 job 0", on_host="a ab", host="1 0 0 0"),
        *given("run w0 compute", "run w0 store"),
        Step("report w0 job 1", on_host="a ab ac", host="0 0 0 0", jobs=""),
    )


@case(PINNING, FENCING, scope=SAME_PROMPT)
def test_blocks_on_their_way_are_not_stored_again_by_a_later_step() -> Steps:
    """All that y has is in flight already: no second store is made, now or when the first one is complete."""
    return (
        *X_ON_ITS_WAY,
        *given("preempt x", 'submit y "ab"'),
        Step("admit y", requests="WAITING RUNNING", kv="y a ab"),
        Step("launch", refused="NothingToLaunch"),
        Step("run w0 store", host="1 1 0 0 0 0"),
        Step("report w0 job 0", on_host="a ab", host="0 0 0 0 0 0", jobs=""),
        Step("launch", refused="NothingToLaunch"),
    )


@case(PINNING, scope=SAME_PROMPT)
def test_a_reset_forgets_what_was_on_its_way() -> Steps:
    """The review of PR 39726: reset() has to clear `_in_flight_store_gpu_blocks`, or `ab` is never stored again.

    Old and new store of one key run side by side in blocks of their own; the old one's completion does not end the
    de-duplication of the new one.
    """
    return (
        *X_ON_ITS_WAY,
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0"),
        *given("admit x"),
        Step("launch", jobs="0 store ABANDONED w0, 1 store LIVE w0", device="2 2 1 1", host="1 1 1 1 0 0"),
        *given("run w0 compute", "handle output", "run w0 store"),
        Step("report w0 job 0", jobs="1 store LIVE w0", on_host="", device="2 2 0 0", host="1 1 0 0 0 0"),
        *given('submit y "ab"', "admit y"),
        Step("launch", refused="NothingToLaunch"),
        *given("run w0 store"),
        Step("report w0 job 1", jobs="", on_host="a ab", host="0 0 0 0 0 0"),
    )


@case(FENCING, scope=SAME_PROMPT)
def test_a_reset_forgets_what_was_on_its_way_under_fencing() -> Steps:
    """The forgotten store holds no host block any more: the new one may take the same, and waits for the old copy."""
    return (
        *X_ON_ITS_WAY,
        Step("reset invalidate", answer=True, jobs="", host="0 0 0 0 0 0"),
        *given("admit x"),
        Step("launch", jobs="1 store LIVE w0", host="1 1 0 0 0 0", may_run="w0 store"),
        *given("run w0 store", "run w0 compute", "handle output"),
        Step("report w0 job 0", jobs="1 store LIVE w0", on_host="", host="1 1 0 0 0 0"),
        *given('submit y "ab"', "admit y"),
        Step("launch", refused="NothingToLaunch"),
        *given("run w0 store"),
        Step("report w0 job 1", jobs="", on_host="a ab", host="0 0 0 0 0 0"),
    )


@case(
    PINNING._replace(store_mode="lazy"),
    FENCING._replace(store_mode="lazy"),
    scope=SAME_PROMPT._replace(prompts=("ab", "c")),
)
def test_lazy_stores_pass_over_what_is_on_its_way() -> Steps:
    """Free blocks near eviction are looked at by every launch: under fencing the sources of a store are among them."""
    return (
        *X_ON_ITS_WAY,
        *given("finish x"),
        Step("launch", jobs="0 store LIVE w0", host="1 1 0 0 0 0"),
        *given('submit y "c"', "admit y", "launch", "run w0 compute", "handle output", "finish y"),
        Step("launch", jobs="0 store LIVE w0, 1 store LIVE w0", host="1 1 1 0 0 0"),
        *given("run w0 store", "run w0 store", "report w0 job 0"),
        Step("report w0 job 1", on_host="a ab c", host="0 0 0 0 0 0", device="0 0 0 0", jobs=""),
        Step("launch", refused="NothingToLaunch"),
    )
