"""A live request after a fencing reset is scheduled again: vLLM PR 48102.

The reset drops all jobs. Ids of them that stay behind in a request would keep it waiting for completions that are
ignored, for ever.
"""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

FENCING = Contract("fencing")

DECODING = Scope(
    device_blocks=4,
    host_blocks=4,
    workers=1,
    prompts=("ab",),
    decode=1,
    resets=2,
    meanings=("invalidate", "evict"),
    survivors=True,
)

STORE_IN_FLIGHT = given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output")


@case(FENCING, scope=DECODING)
def test_a_live_request_is_scheduled_again_after_a_reset() -> Steps:
    """PR 48102: before the reset its own store defers it (PR 46231); after it nothing does, and it gets to its end."""
    return (
        *STORE_IN_FLIGHT,
        Step("preempt x", waits_for="x 0", requests="WAITING"),
        Step("lookup x", refused="Deferred"),
        Step("admit x", refused="WrongPhase"),
        Step("reset invalidate", answer=True, waits_for="", jobs=""),
        Step("lookup x", found="x - | -"),
        Step("admit x", requests="RUNNING"),
        Step("launch", jobs="1 store LIVE w0", waits_for="x 1"),
        Step("run w0 store", may_run="w0 compute"),
        *given("run w0 compute", "handle output", "grow x", "launch"),
        Step("report w0 job 0", waits_for="x 1 2", on_host=""),
        *given("run w0 compute", "handle output", "run w0 store", "run w0 store", "report w0 job 1"),
        Step("report w0 job 2", waits_for="", on_host="a ab ab+1"),
        Step("finish x", requests="DONE", device="0 0 0 0", host="0 0 0 0", jobs=""),
    )


@case(FENCING, scope=DECODING)
def test_a_survivor_of_a_reset_stores_again_from_its_first_block() -> Steps:
    """PR 48102's loop: next_stored_block_idx = 0 and transfer_jobs.clear(); preempted later, it is not deferred."""
    return (
        *STORE_IN_FLIGHT,
        Step("reset evict, survivors kept", answer=True, waits_for="", jobs="", requests="RUNNING", device="1 1 0 0"),
        *given("grow x"),
        Step("launch", jobs="1 store LIVE w0", waits_for="x 1", host="1 1 1 0"),
        *given("run w0 store", "run w0 compute", "run w0 store", "handle output"),
        Step("report w0 job 0", on_host="", waits_for="x 1"),
        Step("report w0 job 1", on_host="a ab ab+1", waits_for=""),
        *given("preempt x"),
        Step("lookup x", found="x - | a ab"),
        Step("admit x", requests="LOADING", jobs="2 load LIVE w0"),
        *given("launch"),
        Step("run w0 load", kv="x a ab"),
        *given("report w0 job 2"),
        Step("wake x", requests="RUNNING"),
    )


@case(FENCING, scope=DECODING)
def test_a_survivor_of_an_invalidating_reset_gets_to_its_end_and_stores_nothing() -> Steps:
    """What the old weights computed is good for this request alone; the reset answers False while it holds blocks."""
    return (
        *STORE_IN_FLIGHT,
        Step(
            "reset invalidate, survivors kept", answer=False, waits_for="", jobs="", requests="RUNNING", kv="x -a -ab"
        ),
        *given("grow x"),
        Step("launch", jobs="", may_run="w0 store"),
        *given("run w0 store"),
        Step("run w0 compute", kv="x -a -ab -ab+1"),
        Step("handle output", on_device=""),
        Step("report w0 job 0", on_host=""),
        Step("finish x", requests="DONE", device="0 0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
    )
