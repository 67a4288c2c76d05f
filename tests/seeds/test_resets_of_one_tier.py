"""Resets of the device tier alone, and of the host tier alone: what each drops, what goes on, and what it answers.

vLLM resets the device alone unless it is asked to reset its connector too (issue 57727: external hits go on). A reset
of one tier can only mean `evict`: the tier that is kept serves what it has.
"""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning")
FENCING = Contract("fencing")

ONE = Scope(
    device_blocks=4,
    host_blocks=4,
    workers=1,
    prompts=("ab", "ab"),
    resets=3,
    meanings=("invalidate", "evict"),
    tiers=("all", "device", "host"),
    survivors=True,
)

STORE_IN_FLIGHT = given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")
STORED = (*STORE_IN_FLIGHT, *given("run w0 store", "report w0 job 0"))
LOAD_IN_FLIGHT = (
    *STORED,
    *given("finish x"),
    Step("reset evict of the device tier", answer=True),
    *given('submit y "ab"', "admit y", "launch"),
)


@case(PINNING, FENCING, scope=ONE)
def test_a_reset_of_the_device_leaves_what_the_host_has() -> Steps:
    """What the device no longer has is loaded again (vLLM issue 57727: external hits rise right after)."""
    return (
        *STORED,
        *given("finish x"),
        Step("reset evict of the device tier", answer=True, on_device="", on_host="a ab", device="0 0 0 0"),
        *given('submit y "ab"'),
        Step("admit y", requests="DONE LOADING", jobs="1 load LIVE w0", host="1 1 0 0"),
        *given("launch", "run w0 load"),
        Step("report w0 job 1", on_device="a ab", kv="y a ab"),
    )


@case(PINNING, FENCING, scope=ONE)
def test_a_reset_of_the_host_leaves_what_the_device_has() -> Steps:
    """Nobody is preempted: no request holds host blocks. What runs is offered to the empty host once more."""
    return (
        *STORED,
        Step("reset evict of the host tier", answer=True, on_device="a ab", on_host="", requests="RUNNING"),
        Step("launch", jobs="1 store LIVE w0"),
        *given("run w0 store"),
        Step("report w0 job 1", on_host="a ab"),
    )


@case(PINNING, scope=ONE)
def test_a_store_goes_on_through_a_reset_of_the_device() -> Steps:
    """It holds device blocks, so the answer is False; but what it carries is true, and the host is not reset."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset evict of the device tier", answer=False, jobs="0 store LIVE w0", on_device="", requests="WAITING"),
        *given("run w0 store"),
        Step("report w0 job 0", on_host="a ab", device="0 0 0 0"),
        Step("reset evict of the device tier", answer=True, on_host="a ab"),
    )


@case(FENCING, scope=ONE)
def test_a_store_goes_on_through_a_reset_of_the_device_under_fencing() -> Steps:
    """Its device blocks are nobody's, so the answer is True; the request that was preempted waits for it (PR 46231)."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset evict of the device tier", answer=True, jobs="0 store LIVE w0", waits_for="x 0", device="0 0 0 0"),
        Step("admit x", refused="WrongPhase"),
        *given("run w0 store"),
        Step("report w0 job 0", on_host="a ab", waits_for=""),
        Step("admit x", jobs="1 load LIVE w0"),
    )


@case(PINNING, scope=ONE)
def test_a_store_is_abandoned_by_a_reset_of_the_host() -> Steps:
    """It would publish there (PR 44541: a tier is reset while a copy into it runs). Its request runs on."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset evict of the host tier", answer=False, jobs="0 store ABANDONED w0", on_device="a ab"),
        *given("run w0 store"),
        Step("report w0 job 0", on_host="", host="0 0 0 0", device="1 1 0 0", requests="RUNNING"),
        Step("reset evict of the host tier", answer=True),
    )


@case(FENCING, scope=ONE)
def test_a_store_is_forgotten_by_a_reset_of_the_host_under_fencing() -> Steps:
    """Its request waits for it no more (PR 48102), and runs on."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset evict of the host tier", answer=True, jobs="", waits_for="", host="0 0 0 0", on_device="a ab"),
        *given("run w0 store"),
        Step("report w0 job 0", on_host="", requests="RUNNING"),
    )


@case(PINNING, scope=ONE)
def test_a_load_is_abandoned_by_a_reset_of_the_device() -> Steps:
    """It would publish there. Its request waits again, and will find on the host what it found before."""
    return (
        *LOAD_IN_FLIGHT,
        Step("reset evict of the device tier", answer=False, jobs="1 load ABANDONED w0", requests="DONE WAITING"),
        *given("run w0 load"),
        Step("report w0 job 1", on_device="", on_host="a ab", device="0 0 0 0", host="0 0 0 0"),
    )


@case(FENCING, scope=ONE)
def test_a_load_is_forgotten_by_a_reset_of_the_device_under_fencing() -> Steps:
    """The same, and its request waits for nothing (PR 48102)."""
    return (
        *LOAD_IN_FLIGHT,
        Step("reset evict of the device tier", answer=True, jobs="", waits_for="", requests="DONE WAITING"),
        *given("run w0 load"),
        Step("report w0 job 1", on_device="", on_host="a ab", device="0 0 0 0", host="0 0 0 0"),
    )


@case(PINNING, scope=ONE)
def test_a_load_goes_on_through_a_reset_of_the_host() -> Steps:
    """It keeps its host blocks, which nobody can hit any more, until it is reported: a cause for False."""
    return (
        *LOAD_IN_FLIGHT,
        Step("reset evict of the host tier", answer=False, jobs="1 load LIVE w0", on_host="", host="1 1 0 0"),
        *given("run w0 load"),
        Step("report w0 job 1", on_device="a ab", host="0 0 0 0", kv="y a ab"),
        Step("reset evict of the host tier", answer=True, on_device="a ab"),
    )


@case(FENCING, scope=ONE)
def test_a_load_goes_on_through_a_reset_of_the_host_under_fencing() -> Steps:
    """The blocks that it reads stay its own; nothing old can be hit there, and so the answer is True."""
    return (
        *LOAD_IN_FLIGHT,
        Step("reset evict of the host tier", answer=True, jobs="1 load LIVE w0", on_host="", host="1 1 0 0"),
        *given("run w0 load"),
        Step("report w0 job 1", on_device="a ab", host="0 0 0 0", kv="y a ab"),
    )


@case(PINNING, scope=ONE)
def test_survivors_of_a_reset_of_the_device() -> Steps:
    """They hold device blocks, and are a cause for False under pinning; what the host has they do not offer again."""
    return (
        *STORED,
        Step("reset evict of the device tier, survivors kept", answer=False, on_device="", on_host="a ab"),
        *given("finish x"),
        Step("reset evict of the device tier, survivors kept", answer=True),
    )
