"""A transfer that never completes: what stays held, what is shown of it, what a later reset does.

Either its copy never runs, or one worker's report is lost. Nothing corrupts; under pinning what it holds is held for
ever and every reset says so by answering False, under fencing a reset ends the matter.
"""

import pytest
from tests.seeds.driving import CASES, Step, Steps, case, given

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.targets.kvoffload import Host, KVOffload, Ledger

PINNING = Contract("pinning")
FENCING = Contract("fencing")

TWO = Scope(device_blocks=4, host_blocks=2, workers=1, prompts=("ab", "cd"), resets=3)
LOST = TWO._replace(workers=2, losses=1)

X_SERVED_BUT_NOT_STORED = given('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output", "finish x")


@case(PINNING, scope=TWO)
def test_a_store_that_never_runs() -> Steps:
    """Its blocks on both tiers stay held; the host has no room for what comes later, which is served all the same."""
    return (
        *X_SERVED_BUT_NOT_STORED,
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0", device="1 1 0 0", host="1 1"),
        *given('submit y "cd"', "admit y"),
        Step("launch", jobs="0 store ABANDONED w0", device="1 1 1 1", host="1 1"),
        *given("run w0 compute", "handle output"),
        Step("finish y", requests="DONE DONE", on_device="c cd", device="1 1 0 0"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0", device="1 1 0 0", host="1 1", on_device=""),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w0", device="1 1 0 0", host="1 1"),
    )


@case(FENCING, scope=TWO)
def test_a_store_that_never_runs_under_fencing() -> Steps:
    """A reset takes its blocks and answers True. What is launched after it waits for the copy, visibly."""
    return (
        *X_SERVED_BUT_NOT_STORED,
        Step("reset invalidate", answer=True, jobs="", device="0 0 0 0", host="0 0"),
        *given('submit y "cd"', "admit y"),
        Step("launch", jobs="1 store LIVE w0", may_run="w0 store", device="1 1 0 0", host="1 1"),
        Step("run w0 compute", refused="NotRunnable"),
        Step("handle output", refused="NotRunnable"),
        Step("reset invalidate", answer=True, jobs="", requests="DONE WAITING", may_run="w0 store", host="0 0"),
        Step("admit y", requests="DONE RUNNING"),
        Step("launch", refused="NothingToLaunch"),
    )


BOTH_RAN_ONE_REPORTED = given(
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "run w1 compute", "handle output"),
    *("run w0 store", "run w1 store", "report w0 job 0", "lose the report of w1 for job 0"),
)

Y_IS_SERVED = given("admit y", "launch", "run w0 compute", "run w1 compute", "handle output")


@case(PINNING, scope=LOST)
def test_a_store_whose_report_is_lost() -> Steps:
    """It is shown as awaiting w1. No reset ever answers True again, and none lets go of its blocks."""
    return (
        *BOTH_RAN_ONE_REPORTED,
        Step("finish x", jobs="0 store LIVE w1", on_host="", device="1 1 0 0", host="1 1"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w1", device="1 1 0 0", host="1 1"),
        *given('submit y "cd"'),
        *Y_IS_SERVED,
        Step("finish y", jobs="0 store ABANDONED w1", on_device="c cd", on_host="", device="1 1 0 0", host="1 1"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w1", device="1 1 0 0", host="1 1"),
        Step("reset invalidate", answer=False, jobs="0 store ABANDONED w1"),
    )


@case(FENCING, scope=LOST)
def test_a_store_whose_report_is_lost_under_fencing() -> Steps:
    """The copies have run, so the fence holds nobody up: after the reset the host's blocks serve others."""
    return (
        *BOTH_RAN_ONE_REPORTED,
        Step("finish x", jobs="0 store LIVE w1", on_host="", device="0 0 0 0", host="1 1"),
        Step("reset invalidate", answer=True, jobs="", device="0 0 0 0", host="0 0"),
        *given('submit y "cd"'),
        *Y_IS_SERVED,
        *given("run w0 store", "run w1 store", "report w0 job 1"),
        Step("report w1 job 1", jobs="", on_host="c cd", host="0 0"),
        Step("finish y", device="0 0 0 0"),
        Step("reset invalidate", answer=True),
    )


LOAD = Scope(device_blocks=3, host_blocks=4, workers=1, prompts=("ab", "cd", "ab"), resets=2, losses=1)

LOAD_NEVER_REPORTED = given(
    *('submit x "ab"', "admit x", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 0", "finish x"),
    *('submit y "cd"', "admit y", "launch", "run w0 compute", "handle output"),
    *("run w0 store", "report w0 job 1", "finish y"),
    *('submit z "ab"', "admit z", "launch", "run w0 load", "lose the report of w0 for job 2"),
)
"""`a` was left on the device, `ab` is loaded for z, and z will never hear of it."""


@case(PINNING, scope=LOAD)
def test_a_load_whose_report_is_lost() -> Steps:
    """Its request hangs, visibly; a reset lets the request go on without it, and keeps what the load holds."""
    return (
        *LOAD_NEVER_REPORTED,
        Step("wake z", refused="WrongPhase", jobs="2 load LIVE w0", waits_for="z 2", device="2 1 0", host="1 0 0 0"),
        Step(
            "reset invalidate",
            answer=False,
            jobs="2 load ABANDONED w0",
            requests="DONE DONE WAITING",
            device="1 0 0",
            host="1 0 0 0",
        ),
        *given("admit z", "launch", "run w0 compute", "handle output", "run w0 store"),
        Step("report w0 job 3", on_host="a ab", device="1 1 1", host="1 0 0 0"),
        Step("finish z", requests="DONE DONE DONE", jobs="2 load ABANDONED w0", device="1 0 0", host="1 0 0 0"),
        Step("reset invalidate", answer=False, jobs="2 load ABANDONED w0", device="1 0 0", host="1 0 0 0"),
    )


@case(FENCING, scope=LOAD)
def test_a_load_whose_report_is_lost_under_fencing() -> Steps:
    """Aborted meanwhile, the request drains for ever and holds its table: until a reset, which ends both."""
    return (
        *LOAD_NEVER_REPORTED,
        Step("wake z", refused="WrongPhase", jobs="2 load LIVE w0", waits_for="z 2", device="1 1 0", host="1 0 0 0"),
        Step("abort z", requests="DONE DONE DRAINING", jobs="2 load ABANDONED w0", device="1 1 0", host="1 0 0 0"),
        Step("reset invalidate", answer=True, requests="DONE DONE DONE", jobs="", device="0 0 0", host="0 0 0 0"),
        Step("reset invalidate", answer=True),
    )


@pytest.mark.parametrize("kind", [Ledger, Host])
@pytest.mark.parametrize(
    ("name", "stuck", "resets", "false_resets", "must_keep_stepping"),
    [
        ("a_store_that_never_runs-pinning", (0,), 3, 3, True),
        ("a_store_whose_report_is_lost-pinning", (0,), 3, 3, True),
        ("a_load_whose_report_is_lost-pinning", (2,), 2, 2, True),
        ("a_store_that_never_runs-fencing", (0, 1), 2, 0, True),
        ("a_store_whose_report_is_lost-fencing", (0,), 2, 0, False),
        ("a_load_whose_report_is_lost-fencing", (2,), 2, 0, False),
    ],
)
def test_what_kvoffload_reports_of_it(
    kind: type[KVOffload], name: str, stuck: tuple[int, ...], resets: int, false_resets: int, must_keep_stepping: bool
) -> None:
    """The engine's own figures at the end of each case: jobs that it knows of, resets, and whether there is work left.

    (`a_store_that_never_runs-fencing` ends with y running behind the fence, so there is work.)
    """
    target = kind(CASES[name].setting)
    try:
        for command in CASES[name].commands:
            target.perform(command)
        engine = target.engine
        assert tuple(engine.jobs) == stuck
        assert (engine.statistics.resets, engine.statistics.false_resets) == (resets, false_resets)
        assert engine.has_work() is must_keep_stepping
    finally:
        target.close()
