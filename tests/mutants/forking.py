"""A pytest plugin that holds every mutant against the tests. They are collected once, and run once to see which
functions each calls. Then there is a fork for each mutant: the tests that call its function run until one fails.

mutmut's own runner collects again for each mutant, which costs more than the tests. What it measures is the same.

--mutants FILE    names of the mutants, as JSON
--longest SECONDS tests that take more CPU are not asked
--outcomes FILE   gets one line of JSON for each: what became of it, and by which test
"""

import gc
import json
import math
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

FORKS = 2
"""Mutants that are judged at once."""

PATIENCE = 10.0
"""A test of a mutant may take this many times the CPU that it takes without, and a second: else it is out of time."""

HANGS = 300
"""Seconds after which a test is ended that uses no CPU either."""

MEMORY = 6 << 30
"""Bytes that a mutant may allocate; one that loops and appends would take all there are."""

BROKEN = 3
"""The exit status of a fork that has neither passed nor failed a test."""

SLOW = (
    "test_each_mode_alone[pressure]",
    "test_every_action_is_taken_by_the_mode_that_needs_it",
    "test_named_scopes[pinning-s3",
    "test_the_cases_of_the_gpu_suite_are_these",
    "test_neither_the_control_plane_nor_the_ledger_imports_torch",
    "test_with_threads_and_bytes",
    "test_without_a_bug_the_same_scopes_hold",
)
"""How the names of tests begin that no mutant is held against, because of what they cost."""

COUNTING = ("test_every_method_is_told_but_these",)
"""The same of tests that list the methods of a class: with mutants beside them there are more."""


class Judge(NamedTuple):
    """A test, and the CPU seconds that it takes."""

    test: pytest.Item
    seconds: float


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=Path, required=True)
    parser.addoption("--outcomes", type=Path, required=True)
    parser.addoption("--longest", type=float, default=math.inf)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _can_judge(item)]


def _can_judge(item: pytest.Item) -> bool:
    """Threads are left out, since they do not survive a fork, and of the seeds those that are played on the machine."""
    if item.name.startswith(SLOW + COUNTING):
        return False
    callspec = getattr(item, "callspec", None)
    parameters = {} if callspec is None else callspec.params
    return parameters.get("subject") not in ("machine", "host") and parameters.get("threads") is not True


def pytest_runtestloop(session: pytest.Session) -> bool:
    mutants: list[str] = json.loads(session.config.getoption("--mutants").read_text())
    if session.testsfailed:
        raise session.Interrupted("the tests cannot be collected")
    judges = _judges(session.items, session.config.getoption("--longest"))
    print(f"{len(session.items)} tests judge {len(mutants)} mutants", flush=True)
    gc.freeze()  # a collection in a fork would copy every page of what it inherits
    with session.config.getoption("--outcomes").open("w") as outcomes:
        _judge_all(mutants, judges, outcomes)
    return True


def _judges(tests: Sequence[pytest.Item], longest: float) -> dict[str, list[Judge]]:
    """Which tests call each function, the quickest first. Interrupted if one of them fails with nothing mutated.

    They are tried in a fork, so that nothing is cached yet in the process that the mutants come from.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _try(tests, writer)
    os.close(writer)
    with os.fdopen(reader) as said:
        tried = [json.loads(line) for line in said]
    os.waitpid(pid, 0)
    failed = [tests[index].nodeid for index, (passed, _, _) in enumerate(tried) if not passed]
    if failed or len(tried) < len(tests):
        raise pytest.Session.Interrupted(f"{failed[0] if failed else 'a test'} fails with nothing mutated")
    found: dict[str, list[Judge]] = defaultdict(list)
    for test, (_, seconds, called) in zip(tests, tried, strict=True):
        for function in called if seconds <= longest else ():
            found[function].append(Judge(test, seconds))
    for judges in found.values():
        judges.sort(key=lambda judge: judge.seconds)
    return found


def _try(tests: Sequence[pytest.Item], writer: int) -> None:
    """In the fork: say of each test whether it passes, what CPU it takes, and which functions it calls."""
    try:
        set_mutant_under_test("stats")
        with os.fdopen(writer, "w") as said:
            for test in tests:
                called: set[str] = state()._stats
                called.clear()
                started = time.process_time()
                passed = _passes(test)
                said.write(json.dumps([passed, time.process_time() - started, sorted(called)]) + "\n")
    finally:
        os._exit(0)


def _passes(test: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(test, nextitem=None, log=False))


def _judge_all(mutants: Sequence[str], judges: dict[str, list[Judge]], outcomes: IO[str]) -> None:
    """Every mutant, some at once. A test that found one mutant of a function is asked first of the next."""
    kills: Counter[str] = Counter()
    running: dict[int, tuple[str, list[Judge], int]] = {}
    waiting: Iterator[str] = iter(mutants)
    done = 0
    while True:
        while len(running) < FORKS and (mutant := next(waiting, None)) is not None:
            of_function = judges.get(mutant.partition("__mutmut_")[0], [])
            asked = sorted(of_function, key=lambda judge: (-kills[judge.test.nodeid], judge.seconds))
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                _be(mutant, asked, writer)
            os.close(writer)
            running[pid] = mutant, asked, reader
        if not running:
            return
        pid, status = os.wait()
        mutant, asked, reader = running.pop(pid)
        with os.fdopen(reader) as said:
            begun = len(said.read().split())
        outcome = _outcome(os.waitstatus_to_exitcode(status), len(asked))
        by = asked[begun - 1].test.nodeid if outcome in ("killed", "timeout") else None
        if by is not None:
            kills[by] += 1
        outcomes.write(json.dumps({"name": mutant, "outcome": outcome, "by": by}) + "\n")
        outcomes.flush()
        done += 1
        if done % 100 == 0:
            print(f"{done} of {len(mutants)}", flush=True)


def _outcome(exit_code: int, asked: int) -> str:
    if not asked:
        return "not called"
    if exit_code == BROKEN:
        raise RuntimeError("a fork could not judge its mutant")
    if exit_code < 0:
        return "timeout" if -exit_code in (signal.SIGPROF, signal.SIGALRM) else "killed"
    return "killed" if exit_code else "survived"


def _be(mutant: str, asked: Sequence[Judge], writer: int) -> None:
    """In the fork: run the tests until one fails; say which is begun, since a test may end the process."""
    code = BROKEN
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 -- until the process ends
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        set_mutant_under_test(mutant)
        code = 0
        for judge in asked:
            os.write(writer, b"test\n")
            signal.setitimer(signal.ITIMER_PROF, 1.0 + PATIENCE * judge.seconds)
            signal.alarm(HANGS)
            if not _passes(judge.test):
                code = 1
                break
    finally:
        os._exit(code)  # also if a test has raised what pytest lets through
