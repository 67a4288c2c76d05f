"""Copies that fail, wholly or in one block, on one worker or on each in another block.

What a failed copy leaves in its destination is nobody's KV. It is not published and not counted as loaded; a load is
computed instead, a store is made again, and what could not be read is not offered to the next one who asks.
"""

from tests.seeds.driving import Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope

PINNING = Contract("pinning")
FENCING = Contract("fencing")

STORES = Scope(
    device_blocks=3, host_blocks=2, workers=2, prompts=("ab", "ab"), resets=1, failures=2, partial_failures=2
)
RELOAD = STORES._replace(device_blocks=2, host_blocks=4, prompts=("ab", "cd", "ab", "ab"), lookups=True)


def ran(stream: str) -> tuple[str, str]:
    return f"run w0 {stream}", f"run w1 {stream}"


X_HANDLED = given('submit x "ab"', "admit x", "launch", *ran("compute"), "handle output")

Z_LOADS = given(
    *('submit x "ab"', "admit x", "launch", *ran("compute"), "handle output"),
    *(*ran("store"), "report w0 job 0", "report w1 job 0", "finish x"),
    *('submit y "cd"', "admit y", "launch", *ran("compute"), "handle output"),
    *(*ran("store"), "report w0 job 1", "report w1 job 1", "finish y"),
    *('submit z "ab"', "admit z", "launch"),
)


@case(PINNING, FENCING, scope=RELOAD)
def test_a_load_that_fails_is_computed_instead() -> Steps:
    """One worker's copy fails, the other's does not: no worker makes up for another. (vLLM, B79: failure taken for
    success.)"""
    return (
        *Z_LOADS,
        Step("run w0 load, which fails", kv="z cd/torn c/torn"),
        *given("run w1 load"),
        Step("report w0 job 2", on_device="", on_host="a ab c cd", jobs="2 load LIVE w1"),
        Step("report w1 job 2", requests="DONE DONE LOADING", on_device="", on_host="c cd", jobs=""),
        Step("wake z", requests="DONE DONE RUNNING"),
        Step("launch", jobs="3 store LIVE w0 w1", may_run="w0 compute, w1 compute"),
        *given(*ran("compute")),
        Step("handle output", on_device="a ab", kv="z a ab"),
        *given(*ran("store"), "report w0 job 3"),
        Step("report w1 job 3", on_host="a ab"),
    )


@case(PINNING, FENCING, scope=RELOAD)
def test_a_load_that_fails_in_part_is_computed_from_there_on() -> Steps:
    """What precedes the first failure is kept; what could be read stays on the host."""
    return (
        *Z_LOADS,
        Step("run w0 load", kv="z a/cd ab/c"),
        Step("run w1 load, of which pair 1 fails", kv="z a ab/torn"),
        *given("report w0 job 2"),
        Step("report w1 job 2", on_device="a", on_host="a c cd", jobs=""),
        *given("wake z"),
        Step("launch", jobs="3 store LIVE w0 w1"),
        *given(*ran("compute")),
        Step("handle output", on_device="a ab", kv="z a ab"),
    )


@case(PINNING, FENCING, scope=RELOAD)
def test_what_precedes_the_first_failure_is_all_that_is_kept() -> Steps:
    """The second block came over, and is computed again all the same: requests compute in order."""
    return (
        *Z_LOADS,
        *given("run w0 load", "run w1 load, of which pair 0 fails", "report w0 job 2"),
        Step("report w1 job 2", on_device="", on_host="ab c cd"),
        *given("wake z", "launch", *ran("compute")),
        Step("handle output", on_device="a ab", kv="z a ab"),
    )


@case(PINNING, FENCING, scope=RELOAD)
def test_what_could_not_be_read_is_not_found_again() -> Steps:
    """Neither by a later lookup nor by one that has found it already (vLLM issue 49176: it fails again for ever)."""
    return (
        *Z_LOADS,
        *given("run w0 load, which fails", "run w1 load", "report w0 job 2", 'submit r3 "ab"'),
        Step("lookup r3", found="r3 - | a ab", host="2 2 0 0"),
        Step("report w1 job 2", found="", host="0 0 0 0", on_host="c cd"),
        Step("lookup r3", found="r3 - | -"),
    )


@case(PINNING, FENCING, scope=STORES)
def test_a_store_that_fails_is_made_again() -> Steps:
    """Nothing of it is published, its blocks come back, and neither cursor nor de-duplication stands in the way."""
    return (
        *X_HANDLED,
        *given("run w0 store", "run w1 store, which fails", "report w0 job 0"),
        Step("report w1 job 0", jobs="", on_host="", host="0 0"),
        Step("launch", jobs="1 store LIVE w0 w1", host="1 1"),
        *given(*ran("store"), "report w0 job 1"),
        Step("report w1 job 1", jobs="", on_host="a ab", host="0 0"),
    )


@case(PINNING, FENCING, scope=STORES)
def test_workers_that_fail_in_different_blocks_leave_none() -> Steps:
    """What failed is what failed on any worker."""
    return (
        *X_HANDLED,
        *given("run w0 store, of which pair 0 fails", "run w1 store, of which pair 1 fails", "report w1 job 0"),
        Step("report w0 job 0", jobs="", on_host="", host="0 0"),
        Step("launch", jobs="1 store LIVE w0 w1"),
    )


@case(PINNING, FENCING, scope=STORES._replace(host_blocks=3))
def test_a_store_that_fails_in_part_keeps_the_rest() -> Steps:
    """The first block failed: the second one is on the host all the same, and only the first is stored again."""
    return (
        *X_HANDLED,
        *given("run w0 store, of which pair 0 fails", "run w1 store", "report w0 job 0"),
        Step("report w1 job 0", jobs="", on_host="ab", host="0 0 0"),
        Step("launch", jobs="1 store LIVE w0 w1", host="1 0 0", on_host="ab"),
        *given(*ran("store"), "report w0 job 1"),
        Step("report w1 job 1", on_host="a ab"),
    )


@case(PINNING, FENCING, scope=STORES)
def test_who_left_a_block_to_a_store_that_fails_stores_it() -> Steps:
    """y passed over its blocks since x's store had them (vLLM PR 41289). x is gone when that store fails."""
    return (
        *X_HANDLED,
        *given('submit y "ab"', "admit y", "finish x"),
        Step("launch", refused="NothingToLaunch"),
        *given("run w0 store, which fails", "run w1 store", "report w0 job 0"),
        Step("report w1 job 0", jobs="", on_host=""),
        Step("launch", jobs="1 store LIVE w0 w1"),
    )


def dropped(answer: bool, host: str) -> Steps:
    return (
        *X_HANDLED,
        Step("reset invalidate", answer=answer, host=host),
        *given("run w0 store, which fails", "run w1 store", "report w0 job 0"),
        Step("report w1 job 0", jobs="", on_host="", on_device="", host="0 0", device="0 0 0"),
    )


@case(PINNING, scope=STORES)
def test_a_dropped_job_that_fails_lets_go_of_what_it_holds() -> Steps:
    """And that is all that its report does."""
    return dropped(False, "1 1")


@case(FENCING, scope=STORES)
def test_a_dropped_job_that_fails_lets_go_of_what_it_holds_under_fencing() -> Steps:
    """It holds nothing: its report changes nothing."""
    return dropped(True, "0 0")
