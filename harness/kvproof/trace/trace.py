"""A trace: what was done to a target, and what was found. Data without behaviour, which outlives versions."""

from dataclasses import dataclass

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.failure import Failure
from kvproof.job import Job, reading_of
from kvproof.targets.command import Command
from kvproof.verdict import Verdict

SCHEMA = 1
"""The newest schema that this version writes and reads. It grows when an older reader would misunderstand a file."""

MAX_COMMANDS = 100_000
"""The longest trace that is read or written."""


class BadTrace(ValueError):
    """A trace that cannot be used: one sentence says what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Trace:
    """One sequence of commands with everything that is needed to judge it again.

    target    as `--target` takes it; device: the device of the run, or empty
    seed      of the run that found it; commit: of the code that was judged, or empty
    verdict   what that run found; property: the property that it broke, or None
    engine    that found it, or empty if a person wrote the trace
    note      what the trace is about, in a sentence, or empty
    reading   of a reset that answered False, where the run said how it is read; else empty
    """

    contract: Contract
    scope: Scope
    scope_name: str
    target: str
    commands: tuple[Command, ...]
    verdict: Verdict
    property: str | None = None
    engine: str = ""
    device: str = ""
    seed: int = 0
    commit: str = ""
    note: str = ""
    reading: str = ""
    schema: int = SCHEMA


def of_failure(job: Job, failure: Failure, commit: str) -> Trace:
    """The trace of a violation that a job has found."""
    return Trace(
        contract=failure.contract or job.contract,
        scope=failure.scope,
        scope_name=failure.scope_name,
        target=failure.target,
        commands=failure.commands,
        verdict=Verdict.FRAGILE if failure.fault else Verdict.REFUTED,
        property=failure.property,
        engine=failure.engine,
        device=failure.device or job.device,
        seed=job.seed,
        commit=commit,
        note=failure.sentence,
        reading=reading_of(job),
    )
