"""High-water marks: of one stream, monotone, in batches; late, repeated, lost, forged; and launches without compute."""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning", reports="marks")
FENCING = Contract("fencing", reports="marks")
LAZY = PINNING._replace(store_mode="lazy"), FENCING._replace(store_mode="lazy")

DECODING = Scope(device_blocks=3, host_blocks=3, workers=2, prompts=("ab",), decode=1)
ONE_BLOCK = Scope(
    device_blocks=3, host_blocks=3, workers=1, prompts=("a",), resets=2, duplicates=9, losses=9, forgeries=1
)
TWO_REQUESTS = Scope(device_blocks=2, host_blocks=3, workers=1, prompts=("a", "b"), losses=1)


@case(PINNING, FENCING, scope=DECODING)
def test_one_mark_completes_several_jobs() -> Steps:
    """Each worker says how far it has got; a job is complete when the last of them has passed it."""
    return (
        *given('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output", "grow x"),
        *given("launch", "run w0 compute", "run w1 compute", "run w0 store", "run w0 store"),
        Step("report w0 stores up to job 1", jobs="0 store LIVE w1, 1 store LIVE w1", on_host="", host="1 1 1"),
        *given("run w1 store"),
        Step("report w1 stores up to job 1", refused="UnknownJob", jobs="0 store LIVE w1, 1 store LIVE w1"),
        Step("report w1 stores up to job 0", jobs="1 store LIVE w1", on_host="a ab", host="1 0 0"),
        *given("run w1 store"),
        Step("report w1 stores up to job 1", jobs="", on_host="a ab ab+1", host="0 0 0"),
    )


@case(PINNING, FENCING, scope=DECODING)
def test_two_jobs_complete_by_one_mark() -> Steps:
    """The last worker reports both at once."""
    return (
        *given('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output", "grow x"),
        *given("launch", "run w0 compute", "run w1 compute", "run w0 store", "run w0 store"),
        *given("report w0 stores up to job 0", "report w0 stores up to job 1", "run w1 store", "run w1 store"),
        Step("report w1 stores up to job 1", jobs="", on_host="a ab ab+1", host="0 0 0"),
    )


@case(PINNING, FENCING, scope=TWO_REQUESTS)
def test_the_mark_of_one_stream_says_nothing_of_the_other() -> Steps:
    """The load has the smaller id and still runs when a younger store is copied: x must not be woken by its mark."""
    return (
        *given('submit x "a"', "admit x", "launch", "run w0 compute", "run w0 store"),
        Step("report w0 stores up to job 0", jobs="", on_host="a"),
        *given("preempt x", "handle output", "admit x", 'submit y "b"', "admit y"),
        Step("launch", jobs="1 load LIVE w0, 2 store LIVE w0", may_run="w0 compute, w0 load"),
        *given("run w0 compute", "run w0 store"),
        Step("report w0 loads up to job 2", refused="UnknownJob", jobs="1 load LIVE w0, 2 store LIVE w0"),
        Step("report w0 stores up to job 2", jobs="1 load LIVE w0", on_host="a b", waits_for="x 1"),
        Step("wake x", refused="WrongPhase", requests="LOADING RUNNING"),
        *given("run w0 load"),
        Step("report w0 loads up to job 1", jobs="", waits_for="", on_device="a", kv="x a, y b"),
        Step("wake x", requests="RUNNING RUNNING"),
    )


@case(PINNING, scope=ONE_BLOCK)
def test_one_mark_drains_what_a_reset_abandoned_and_completes_what_came_after() -> Steps:
    """The abandoned store releases its own and publishes nothing, the live one publishes; old marks change nothing."""
    return (
        *given('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0", device="1 0 0", host="1 0 0"),
        *given("admit x", "launch", "run w0 compute", "handle output"),
        Step("run w0 store", jobs="0 store ABANDONED w0, 1 store LIVE w0", device="2 1 0", host="1 1 0"),
        Step("report w0 stores up to job 1", jobs="", on_host="a", device="1 0 0", host="0 0 0"),
        Step("report w0 the last mark of its stores again", jobs="", on_host="a", device="1 0 0", host="0 0 0"),
        Step("report w0 the first mark of its stores again", jobs="", on_host="a", device="1 0 0", host="0 0 0"),
        Step("reset invalidate", answer=True, on_host="", device="0 0 0"),
        Step("report w0 the last mark of its stores again", jobs="", on_host="", device="0 0 0", host="0 0 0"),
    )


@case(FENCING, scope=ONE_BLOCK)
def test_a_mark_from_before_a_reset_passes_what_was_forgotten() -> Steps:
    """It comes when the same key is on its way again; then one mark passes both, and the live store alone publishes."""
    return (
        *given('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store"),
        Step("reset invalidate", answer=True, jobs="", host="0 0 0"),
        *given("admit x"),
        Step("launch", jobs="1 store LIVE w0", waits_for="x 1", host="1 0 0"),
        Step("report w0 stores up to job 0", jobs="1 store LIVE w0", waits_for="x 1", on_host="", host="1 0 0"),
        Step("report w0 the last mark of its stores again", jobs="1 store LIVE w0", on_host="", host="1 0 0"),
        *given("run w0 compute", "handle output", "run w0 store"),
        Step("report w0 the first mark of its stores again", jobs="1 store LIVE w0", on_host="", host="1 0 0"),
        Step("report w0 stores up to job 1", jobs="", waits_for="", on_host="a", host="0 0 0"),
    )


@case(PINNING, FENCING, scope=ONE_BLOCK)
def test_a_lost_mark_is_healed_by_the_next() -> Steps:
    """Although nothing more is copied, and although it is the same mark."""
    return (
        *given('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store"),
        Step("lose the mark of w0's stores", jobs="0 store LIVE w0", on_host="", host="1 0 0"),
        Step("lose the mark of w0's stores", jobs="0 store LIVE w0", on_host="", host="1 0 0"),
        Step("report w0 stores up to job 0", jobs="", on_host="a", host="0 0 0"),
    )


@case(PINNING, FENCING, scope=ONE_BLOCK)
def test_marks_that_were_never_earned() -> Steps:
    """Of a job that was never issued, of one that has not run, of one on the other stream."""
    return (
        Step("report w0 stores up to job 0", refused="UnknownJob"),
        *given('submit x "a"', "admit x", "launch"),
        Step("forge a report of w0 for a job that never was", refused="UnknownJob", jobs="0 store LIVE w0"),
        Step("report w0 stores up to job 0", refused="UnknownJob", jobs="0 store LIVE w0"),
        *given("run w0 compute", "run w0 store"),
        Step("report w0 loads up to job 0", refused="UnknownJob", jobs="0 store LIVE w0"),
        Step("report w0 stores up to job 1", refused="UnknownJob", jobs="0 store LIVE w0"),
        Step("report w0 stores up to job 0", jobs="", on_host="a"),
    )


@case(*LAZY, scope=ONE_BLOCK)
def test_marks_of_a_launch_that_carries_stores_and_no_compute() -> Steps:
    """Nothing else is ever launched: the mark does not wait for a step to be told with."""
    return (
        *given('submit x "a"', "admit x", "launch", "run w0 compute", "handle output", "finish x"),
        Step("launch", jobs="0 store LIVE w0", may_run="w0 store"),
        *given("run w0 store"),
        Step("report w0 stores up to job 0", jobs="", on_host="a", device="0 0 0", host="0 0 0"),
    )
