"""Deadlines: a job whose report does not come is cleaned up as a failure, and what is still copied harms nobody.

Without a deadline the same job is waited for, for ever: that is `test_never_completes`.
"""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning", deadline="expire")
FENCING = Contract("fencing", deadline="expire")

STORES = Scope(device_blocks=4, host_blocks=2, workers=2, prompts=("ab", "cd"), resets=2, losses=1, expiries=1)
RELOAD = STORES._replace(workers=1, device_blocks=2, host_blocks=4, prompts=("ab", "cd", "ab"))


def ran(stream: str) -> tuple[str, str]:
    return f"run w0 {stream}", f"run w1 {stream}"


X_HANDLED = given('submit x "ab"', "admit x", "launch", *ran("compute"), "handle output")

Z_LOADS = given(
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "run w0 store", "report w0 job 0"),
    *("finish x", 'submit y "cd"', "admit y", "launch", "run w0 compute", "handle output", "run w0 store"),
    *("report w0 job 1", "finish y", 'submit z "ab"', "admit z", "launch"),
)


@case(PINNING, FENCING, scope=STORES)
def test_a_store_whose_report_is_lost_expires() -> Steps:
    """Both workers have copied it, one report is lost. It publishes nothing, lets go of everything, and is made again;
    the next reset answers True."""
    return (
        *X_HANDLED,
        *given(*ran("store"), "report w0 job 0"),
        Step("lose the report of w1 for job 0", jobs="0 store LIVE w1", host="1 1"),
        Step("let job 0 expire", jobs="", host="0 0", on_host="", device="1 1 0 0"),
        Step("launch", jobs="1 store LIVE w0 w1", host="1 1", may_run="w0 store, w1 store"),
        *given(*ran("store"), "report w0 job 1"),
        Step("report w1 job 1", on_host="a ab"),
        Step("let job 1 expire", refused="NotOutstanding"),
        Step("reset invalidate", answer=True),
    )


@case(PINNING, FENCING, scope=STORES)
def test_a_late_report_of_an_expired_store_is_absorbed_once() -> Steps:
    """Worker 1 is slow. Whatever is launched after the deadline waits, on worker 1 alone, until its copy is over."""
    return (
        *X_HANDLED,
        *given("run w0 store", "report w0 job 0"),
        Step("let job 0 expire", jobs="", host="0 0", device="1 1 0 0"),
        Step("finish x", device="0 0 0 0"),
        *given('submit y "cd"', "admit y"),
        Step("launch", jobs="1 store LIVE w0 w1", may_run="w0 compute, w1 store"),
        Step("run w1 compute", refused="NotRunnable"),
        Step("run w1 store", may_run="w0 compute, w1 compute"),
        Step("report w1 job 0", on_host="", host="1 1", jobs="1 store LIVE w0 w1"),
        *given(*ran("compute"), "handle output", *ran("store"), "report w0 job 1"),
        Step("report w1 job 1", on_host="c cd", host="0 0"),
    )


@case(PINNING, FENCING, scope=RELOAD)
def test_an_expired_load_is_computed_instead_after_its_copy() -> Steps:
    """The request goes on in the very blocks that the late load still writes: its compute waits for that."""
    return (
        *Z_LOADS,
        Step("let job 2 expire", jobs="", requests="DONE DONE LOADING", waits_for="", on_host="c cd", device="1 1"),
        Step("wake z", requests="DONE DONE RUNNING"),
        Step("launch", jobs="3 store LIVE w0", may_run="w0 load"),
        Step("run w0 load", may_run="w0 compute"),
        Step("report w0 job 2", on_device="", requests="DONE DONE RUNNING"),
        *given("run w0 compute"),
        Step("handle output", on_device="a ab", kv="z a ab"),
    )


@case(PINNING, scope=RELOAD)
def test_what_has_expired_stands_in_no_resets_way() -> Steps:
    """It stays forgotten through the reset, though its copy still runs."""
    return (
        *Z_LOADS,
        *given("let job 2 expire", "abort z"),
        Step("reset invalidate", answer=True, jobs="", device="0 0", host="0 0 0 0", may_run="w0 load"),
        *given("run w0 load"),
        Step("report w0 job 2", device="0 0", host="0 0 0 0", on_device="", on_host=""),
    )


@case(PINNING, FENCING, scope=STORES)
def test_what_is_not_outstanding_cannot_expire() -> Steps:
    """A job that is complete or was never issued; one that a reset has dropped and that only drains."""
    return (
        *X_HANDLED,
        *given(*ran("store"), "report w0 job 0", "report w1 job 0"),
        Step("let job 0 expire", refused="NotOutstanding"),
        Step("let job 1 expire", refused="UnknownJob"),
    )
