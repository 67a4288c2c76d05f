"""Soaks for tests: one of few copies, which must leave no thread, and what every failure of one must be good for."""

import threading
from collections.abc import Callable, Collection, Iterable
from typing import Any

from kvmodel.contract import Contract, Discipline
from kvproof.engines import soak
from kvproof.failure import Failure
from kvproof.job import Job
from kvproof.report.failure_text import failure_text
from kvproof.scopes import SCOPES
from kvproof.targets import command
from kvproof.trace import itf
from kvproof.trace.trace import of_failure
from kvproof.verdict import Result, Verdict
from kvspecs import catalogue


def a_soak(discipline: Discipline, seed: int = 0, copies: object = 600, **contract: Any) -> Job:
    return Job(
        "soak",
        "kvoffload",
        discipline,
        "s7",
        SCOPES["s7"],
        Contract(discipline, **contract),
        seed=seed,
        device="host",
        options={"copies": copies},
    )


def soaked(job: Job, cut: Callable[[], bool] = lambda: False) -> tuple[Result, list[str]]:
    said: list[str] = []
    result = soak.run(job, said.append, cut)
    assert own_threads() == []
    return result, said


def caught(jobs: Iterable[Job], properties: Collection[str]) -> Failure:
    """The failure of the first soak that one of these properties refutes.

    Which consequence of a bug is seen first depends on the timing. So a soak that another property refutes is one that
    has not found the bug by what it breaks, as one that passes is: the next has to.
    """
    seen: list[str] = []
    for job in jobs:
        result, _ = soaked(job)
        seen.append(f"seed {job.seed}: {result.verdict.value} {result.property or ''} {result.detail}")
        assert result.verdict in (Verdict.PASSED, Verdict.REFUTED), seen[-1]
        if result.verdict is Verdict.REFUTED:
            assert result.property in catalogue.NAMES
            assert result.failure is not None
            described(result.failure)
            if result.property in properties:
                return result.failure
    raise AssertionError("\n".join(seen))


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kvoffload-")]


def described(failure: Failure) -> None:
    """A failure can be told, saved and read again."""
    assert failure.commands[failure.step] == failure.commands[-1]
    for each in failure.commands:
        command.validated(each, failure.scope)
    text = failure_text(failure)
    assert text.startswith(f"REFUTED {failure.property}   kvoffload, {failure.discipline}, episode ")
    assert "Streams ran freely (seed " in text
    trace = of_failure(a_soak(failure.discipline), failure, "")
    assert itf.from_bytes(itf.to_text(trace).encode(), "trace").commands == failure.commands
