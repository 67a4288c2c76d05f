"""A second host tier: cascade and promotion, and what resets, failures and late reports make of them.

vLLM PR 40020 has tiers behind the host tier: what is stored goes on to them, and a lookup that hits there waits until
the blocks are back on the host.
"""

from tests.seeds import below_host
from tests.seeds.below_host import AB
from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract

PINNING = Contract("pinning")
FENCING = Contract("fencing")

ON_HOST = given(*below_host.ON_HOST)
CASCADING = given(*below_host.CASCADING)
BELOW = (*given(*below_host.REPLACED), Step(below_host.LEAVE_THE_DEVICE, answer=True))
PROMOTING = (*BELOW, *given(*below_host.PROMOTE))


@case(PINNING, FENCING, scope=AB)
def test_what_the_host_has_goes_on_before_it_is_evicted() -> Steps:
    """PR 40020, cascade: until the copy is over both blocks are held; then a store takes the place on the host."""
    return (
        *ON_HOST,
        Step("launch", jobs="1 cascade LIVE w0", host="1", second="1", on_host="a", on_second=""),
        Step("run w0 cascade", jobs="1 cascade LIVE w0", on_second=""),
        Step("report w0 job 1", jobs="", host="0", second="0", on_host="a", on_second="a"),
        Step("launch", jobs="2 store LIVE w0", on_host="", on_second="a"),
        *given("run w0 store"),
        Step("report w0 job 2", on_host="ab", on_second="a"),
    )


@case(PINNING, FENCING, scope=AB)
def test_a_hit_below_the_host_is_promoted_and_then_loaded() -> Steps:
    """PR 40020, staged promotion: the request waits, and what comes is a host hit like any other."""
    return (
        *BELOW,
        Step("promote what x would hit", jobs="3 promotion LIVE w0", waits_for="x 3", host="1", second="1", on_host=""),
        Step("admit x", refused="WrongPhase"),
        *given("launch"),
        Step("run w0 promotion", on_host=""),
        Step("report w0 job 3", waits_for="", on_host="a", on_second="a", host="0", second="0"),
        Step("admit x", requests="LOADING", jobs="4 load LIVE w0"),
        *given("launch", "run w0 load", "report w0 job 4"),
        Step("wake x", requests="RUNNING", on_device="a"),
    )


@case(PINNING, scope=AB)
def test_a_reset_of_the_host_keeps_what_a_promotion_writes() -> Steps:
    """PR 44541: slots were given away while a promotion wrote them or a cascade read them."""
    return (
        *PROMOTING,
        Step(
            "reset evict of the host tier",
            answer=False,
            jobs="3 promotion ABANDONED w0",
            waits_for="",
            host="1",
            second="1",
            on_host="",
            on_second="",
        ),
        *given("run w0 promotion"),
        Step("report w0 job 3", jobs="", host="0", second="0", on_host=""),
        Step("reset evict of the host tier", answer=True),
    )


@case(FENCING, scope=AB)
def test_a_reset_of_the_host_fences_what_a_promotion_writes_under_fencing() -> Steps:
    """PR 44541 again: whoever takes the block waits for the copy that was forgotten, and its report is stale."""
    return (
        *PROMOTING,
        Step("reset evict of the host tier", answer=True, jobs="", waits_for="", host="0", second="0", on_second=""),
        *given("admit x"),
        Step("launch", jobs="4 store LIVE w0", may_run="w0 promotion"),
        Step("run w0 promotion", may_run="w0 compute"),
        *given("run w0 compute", "handle output", "run w0 store", "report w0 job 4"),
        Step("report w0 job 3", on_host="a", host="0", on_second=""),
    )


@case(PINNING, scope=AB)
def test_a_reset_of_the_host_keeps_what_a_cascade_reads() -> Steps:
    """PR 44541, the other direction."""
    return (
        *CASCADING,
        Step("reset evict of the host tier", answer=False, jobs="1 cascade ABANDONED w0", host="1", second="1"),
        *given("run w0 cascade"),
        Step("report w0 job 1", host="0", second="0", on_host="", on_second=""),
    )


@case(PINNING, FENCING, scope=AB)
def test_a_reset_of_the_device_is_not_in_the_way_of_what_is_below() -> Steps:
    """A promotion holds no device block: the answer is True, and the request goes on waiting for it."""
    return (
        *PROMOTING,
        Step("reset evict of the device tier", answer=True, jobs="3 promotion LIVE w0", waits_for="x 3"),
        *given("run w0 promotion"),
        Step("report w0 job 3", on_host="a", waits_for=""),
    )


@case(PINNING, FENCING, scope=AB)
def test_a_failed_promotion_is_not_tried_for_ever() -> Steps:
    """Issue 49176: a verdict that outlived its failure caught everybody who shared the key."""
    return (
        *PROMOTING,
        *given("run w0 promotion, which fails"),
        Step("report w0 job 3", on_host="", on_second="", waits_for="", host="0", second="0"),
        Step("admit x", requests="RUNNING"),
    )


@case(PINNING, FENCING, scope=AB)
def test_a_failed_cascade_is_made_again() -> Steps:
    """Issue 53062: keys that a cascade had skipped never reached the tier below."""
    return (
        *CASCADING,
        *given("run w0 cascade, which fails"),
        Step("report w0 job 1", on_host="a", on_second="", host="0", second="0"),
        Step("launch", jobs="2 cascade LIVE w0"),
        *given("run w0 cascade"),
        Step("report w0 job 2", on_second="a"),
    )


@case(PINNING, FENCING, scope=AB)
def test_whoever_waited_may_go_and_the_promotion_serves_others() -> Steps:
    """The promotion is nobody's property: aborted, x leaves what it asked for to y."""
    return (
        *PROMOTING,
        Step("abort x", requests="DONE", jobs="3 promotion LIVE w0"),
        *given('submit y "ab"', "run w0 promotion"),
        Step("report w0 job 3", on_host="a", host="0", second="0"),
        Step("admit y", jobs="4 load LIVE w0"),
    )


@case(PINNING, FENCING, scope=AB)
def test_a_repeated_report_of_a_promotion_changes_nothing() -> Steps:
    """Completions count once, below the host too."""
    return (
        *PROMOTING,
        *given("run w0 promotion", "report w0 job 3"),
        Step("report w0 job 3 again", host="0", second="0", on_host="a", on_second="a"),
    )


@case(PINNING, scope=AB)
def test_a_free_block_of_the_second_tier_is_not_freed_again() -> Steps:
    """Refused by name, and nothing changes."""
    return (*BELOW, Step("free a second block twice", refused="DoubleFree", second="0"))


@case(PINNING, FENCING, scope=AB)
def test_after_an_invalidating_reset_nothing_is_served_from_below() -> Steps:
    """The tier that nobody thought of would serve the old weights' KV (issue 57727 of the host)."""
    return (
        *BELOW,
        Step("reset invalidate", answer=True, on_host="", on_second=""),
        Step("admit x", requests="RUNNING"),
        *given("launch", "run w0 compute", "handle output"),
        Step("run w0 store", kv="x a ab"),
    )
