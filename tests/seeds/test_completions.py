"""Late, duplicate and unknown completions. Stale ones change nothing; one of a job that never was is refused whole."""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning")
FENCING = Contract("fencing")

TWO_WORKERS = Scope(device_blocks=3, host_blocks=3, workers=2, prompts=("ab",), resets=1, duplicates=9, forgeries=9)
ONE_WORKER = Scope(device_blocks=4, host_blocks=4, workers=1, prompts=("ab",), resets=1, duplicates=9)


@case(PINNING, FENCING, scope=TWO_WORKERS)
def test_duplicate_completions() -> Steps:
    """One worker twice is not two workers; and what was complete is not completed again, whatever came in between."""
    return (
        *given('submit x "ab"', "admit x", "launch", "run w0 compute", "run w0 store"),
        Step("report w0 job 0", jobs="0 store LIVE w1", host="1 1 0"),
        Step("report w0 job 0 again", jobs="0 store LIVE w1", on_host="", host="1 1 0"),
        Step("report w0 job 0 again", jobs="0 store LIVE w1", on_host="", host="1 1 0"),
        *given("run w1 compute", "run w1 store"),
        Step("report w1 job 0", jobs="", on_host="a ab", host="0 0 0", device="1 1 0"),
        Step("report w1 job 0 again", jobs="", on_host="a ab", host="0 0 0", device="1 1 0"),
        Step("report w0 job 0 again", jobs="", on_host="a ab", host="0 0 0", device="1 1 0"),
        Step("handle output", on_device="a ab"),
        Step("finish x", requests="DONE", device="0 0 0"),
        Step("report w0 job 0 again", on_device="a ab", on_host="a ab", device="0 0 0", host="0 0 0"),
        Step("reset invalidate", answer=True),
        Step("report w1 job 0 again", on_device="", on_host="", device="0 0 0", host="0 0 0"),
    )


@case(PINNING, FENCING, scope=TWO_WORKERS)
def test_unknown_completions() -> Steps:
    """Of a job that was never issued, of one that this worker has not copied, of one that it has reported."""
    return (
        Step("forge a report of w0 for a job that never was", refused="UnknownJob"),
        Step("report w0 job 0", refused="UnknownJob"),
        *given('submit x "ab"', "admit x", "launch"),
        Step("forge a report of w1 for a job that never was", refused="UnknownJob", jobs="0 store LIVE w0 w1"),
        Step("report w0 job 0", refused="UnknownJob", jobs="0 store LIVE w0 w1"),
        *given("run w0 compute", "run w0 store"),
        Step("report w1 job 0", refused="UnknownJob", jobs="0 store LIVE w0 w1"),
        Step("report w0 job 0", jobs="0 store LIVE w1"),
        Step("report w0 job 0", refused="UnknownJob", jobs="0 store LIVE w1"),
        Step("forge a report of w0 for a job that never was", refused="UnknownJob"),
        *given("run w1 compute", "run w1 store"),
        Step("report w1 job 0", jobs="", on_host="a ab"),
    )


@case(PINNING, scope=ONE_WORKER)
def test_late_completion_of_an_abandoned_store() -> Steps:
    """It comes when the same keys are on their way again in another job: it releases its own references, once."""
    return (
        *given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0"),
        *given("admit x"),
        Step("launch", jobs="0 store ABANDONED w0, 1 store LIVE w0", device="2 2 1 1", host="1 1 1 1"),
        Step("report w0 job 0", jobs="1 store LIVE w0", on_host="", device="2 2 0 0", host="1 1 0 0"),
        Step("report w0 job 0 again", jobs="1 store LIVE w0", on_host="", device="2 2 0 0", host="1 1 0 0"),
        *given("run w0 compute", "handle output", "run w0 store"),
        Step("report w0 job 1", jobs="", on_host="a ab", device="1 1 0 0", host="0 0 0 0"),
    )


@case(FENCING, scope=ONE_WORKER)
def test_late_completion_of_a_forgotten_store() -> Steps:
    """PR 48102: below the stale threshold. It releases nothing, though blocks that it once held are held by others."""
    return (
        *given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store"),
        Step("reset invalidate", answer=True, jobs="", host="0 0 0 0"),
        *given("admit x"),
        Step("launch", jobs="1 store LIVE w0", waits_for="x 1", host="1 1 0 0"),
        Step("report w0 job 0", jobs="1 store LIVE w0", waits_for="x 1", on_host="", device="1 1 0 0", host="1 1 0 0"),
        Step("report w0 job 0 again", jobs="1 store LIVE w0", waits_for="x 1", on_host="", host="1 1 0 0"),
        *given("run w0 compute", "handle output", "run w0 store"),
        Step("report w0 job 1", jobs="", waits_for="", on_host="a ab", host="0 0 0 0"),
    )


@case(PINNING, FENCING, scope=ONE_WORKER)
def test_late_completion_of_a_store_whose_request_is_done() -> Steps:
    """Its request has ended, by finishing or otherwise: the store is as good as ever, and publishes."""
    return (
        *given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store"),
        Step("finish x", requests="DONE", jobs="0 store LIVE w0", waits_for=""),
        Step("report w0 job 0", jobs="", on_host="a ab", device="0 0 0 0", host="0 0 0 0"),
        Step("report w0 job 0 again", on_host="a ab", device="0 0 0 0", host="0 0 0 0"),
    )


ABORTED_LOAD = Scope(device_blocks=4, host_blocks=6, workers=1, prompts=("ab", "cdef", "ab"), resets=1, duplicates=9)

LOADING = given(
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 0", "finish x"),
    *('submit y "cdef"', "admit y", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 1", "finish y"),
    *('submit z "ab"', "admit z", "launch"),
)
"""Job 2 loads `a` and `ab` for z."""


@case(PINNING, scope=ABORTED_LOAD)
def test_late_completion_of_an_abandoned_load_never_wakes_a_new_one() -> Steps:
    """z is admitted again while its old load still runs, into other blocks; only its own load wakes it."""
    return (
        *LOADING,
        Step("preempt z", jobs="2 load ABANDONED w0", requests="DONE DONE WAITING", device="1 1 0 0"),
        Step(
            "admit z", jobs="2 load ABANDONED w0, 3 load LIVE w0", waits_for="z 3", device="2 2 1 1", host="2 2 0 0 0 0"
        ),
        *given("launch", "run w0 load"),
        Step(
            "report w0 job 2",
            jobs="3 load LIVE w0",
            waits_for="z 3",
            on_device="",
            device="2 2 0 0",
            host="1 1 0 0 0 0",
        ),
        Step("wake z", refused="WrongPhase", requests="DONE DONE LOADING"),
        Step("report w0 job 2 again", waits_for="z 3"),
        Step("wake z", refused="WrongPhase", requests="DONE DONE LOADING"),
        *given("run w0 load"),
        Step("report w0 job 3", jobs="", waits_for="", on_device="a ab", kv="z a ab", host="0 0 0 0 0 0"),
        Step("wake z", requests="DONE DONE RUNNING"),
        Step("finish z", device="0 0 0 0"),
    )


@case(FENCING, scope=ABORTED_LOAD)
def test_completion_of_the_load_of_an_aborted_request() -> Steps:
    """vLLM PR 32255: the load still writes into z's blocks, which z keeps until the completion; then they are free."""
    return (
        *LOADING,
        Step(
            "abort z", jobs="2 load ABANDONED w0", requests="DONE DONE DRAINING", device="1 1 0 0", host="1 1 0 0 0 0"
        ),
        Step("abort z", refused="WrongPhase"),
        Step("run w0 load", device="1 1 0 0"),
        Step(
            "report w0 job 2",
            jobs="",
            requests="DONE DONE DONE",
            on_device="c cd",
            device="0 0 0 0",
            host="0 0 0 0 0 0",
        ),
        Step("report w0 job 2 again", device="0 0 0 0", host="0 0 0 0 0 0"),
        Step("abort z", refused="UnknownRequest"),
    )
