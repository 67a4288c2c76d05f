"""Engines that do nothing but answer, for tests of what is around engines. They run in worker processes."""

import os
import signal
import time

from kvproof.failure import Failure
from kvproof.job import Cut, Job, Progress
from kvproof.targets.command import Command
from kvproof.verdict import Result, Verdict

STORE_IN_FLIGHT = (
    Command("submit", (0,)),
    Command("schedule"),
    Command("run", (0, "compute")),
    Command("handle_output"),
    Command("schedule"),
    Command("reset", ("invalidate", "preempt")),
)


def explored(job: Job, progress: Progress, cut: Cut) -> Result:
    counts = {"action:Submit": 1, "action:Launch": 2, "guard:admit/room": 1, "guard:admit/no-room": 0}
    return job.result(Verdict.PROVED, 0.1, states=1084, transitions=2000, counts=counts)


def conformed(job: Job, progress: Progress, cut: Cut) -> Result:
    counts = {"edges": 1473, "planned_edges": 1473, "guard:admit/no-room": 3, "field:tables": 9}
    return job.result(Verdict.PROVED, 0.1, states=150, transitions=1473, counts=counts)


def asked_at_each_pair(job: Job, progress: Progress, cut: Cut) -> Result:
    counts = {"edges": 473, "action:Submit": 1, "pairs with invariants": 205, "pairs without invariants": 0}
    return job.result(Verdict.PROVED, 0.1, counts=counts)


def asked_at_a_sample(job: Job, progress: Progress, cut: Cut) -> Result:
    counts = {"edges": 2946, "action:Submit": 1, "pairs with invariants": 2100, "pairs without invariants": 707}
    return job.result(Verdict.PROVED, 0.1, counts=counts)


def bytes_compared(job: Job, progress: Progress, cut: Cut) -> Result:
    return job.result(Verdict.PROVED, 0.1, counts={"edges": 473, "planned_edges": 473, "bytes": 4096})


def fuzzed(job: Job, progress: Progress, cut: Cut) -> Result:
    return job.result(Verdict.PASSED, 0.1, counts={"commands": 6000, "planned_commands": 6000})


def reset_failure(job: Job, commands: tuple[Command, ...] = STORE_IN_FLIGHT) -> Failure:
    return Failure(
        property="owners-account-for-references",
        sentence="Reset released device block d0 while transfer job 1, a store that reads it, is still in flight.",
        target=job.target,
        discipline=job.discipline,
        scope_name=job.scope_name,
        scope=job.scope,
        engine="conform",
        commands=commands,
        step=len(commands) - 1,
        contract_lines=("d0 references 2: x, job 1 (ABANDONED)", "h0 references 1: job 1"),
        target_lines=("d0 references 1: x", "h0 references 0, in the free queue"),
        rule="kvmodel/rules/reset.py",
        source="vLLM PR 39726",
        next_danger="job 1 may read d0 after x frees it",
        cause=("reset", "device block of a store in flight"),
        notes=(
            "",
            "admit x: fresh d0; compute",
            'd0 holds "a"',
            'd0 published as "a"',
            "job 1: store d0 -> h0, launched",
            "answered False",
        )[-len(commands) :],
        minimal="shortest",
    )


def refuted(job: Job, progress: Progress, cut: Cut) -> Result:
    failure = reset_failure(job)
    return job.result(Verdict.REFUTED, 0.1, states=12, failure=failure)


def refuted_later(job: Job, progress: Progress, cut: Cut) -> Result:
    failure = reset_failure(job, (Command("schedule"), *STORE_IN_FLIGHT))
    return job.result(Verdict.REFUTED, 0.1, failure=failure)


def replay(job: Job, progress: Progress, cut: Cut) -> Result:
    return job.result(Verdict.PASSED, 0.1)


def replay_fails(job: Job, progress: Progress, cut: Cut) -> Result:
    return refuted(job, progress, cut)


def shrink(job: Job, progress: Progress, cut: Cut) -> Result:
    return job.result(Verdict.REFUTED, 0.1, failure=reset_failure(job, STORE_IN_FLIGHT[1:]))


def counterexample(job: Job, progress: Progress, cut: Cut) -> Result:
    return job.result(Verdict.COUNTEREXAMPLE_TO_INDUCTION, 0.1, detail="a state that no action leads to")


def raises(job: Job, progress: Progress, cut: Cut) -> Result:
    raise ValueError("two\nlines")


def exits(job: Job, progress: Progress, cut: Cut) -> Result:
    raise SystemExit(0)


def segfaults(job: Job, progress: Progress, cut: Cut) -> Result:
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("still alive")


def leaves(job: Job, progress: Progress, cut: Cut) -> Result:
    os._exit(7)


def prints(job: Job, progress: Progress, cut: Cut) -> Result:
    print("a target that prints")
    return job.result(Verdict.PASSED, 0.1, counts={"commands": 1})


def until_cut(job: Job, progress: Progress, cut: Cut) -> Result:
    states = 0
    while not cut():
        states += 1
        progress(f"{states:,} states")
        time.sleep(0.001)
    return job.result(Verdict.UNDETERMINED, 1.0, states=states, detail="cut short")


def deaf(job: Job, progress: Progress, cut: Cut) -> Result:
    while True:
        time.sleep(0.01)
