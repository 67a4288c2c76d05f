"""fuzz for watched targets: random walks until the planned count of commands; what fails is shrunk."""

import time

from kvmodel import Contract, Machine
from kvproof.engines.run_of import failure_of
from kvproof.engines.shrink import shrunk_with_scope
from kvproof.failure import Failure, fingerprint
from kvproof.job import Cut, Job, Progress, reading_of
from kvproof.obligations.walk import Walk, walk
from kvproof.search.modes import with_modes
from kvproof.targets.open_for import opener
from kvproof.targets.registry import load
from kvproof.verdict import Result, Verdict

COMMANDS = 20_000
"""Commands that a run plans, unless the job's option `watched` says otherwise."""


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Walks until the planned count, on past failures that `--known` lists. The same seed gives the same walks.

    A target's `turns(contract)` says which modes take turns.
    """
    started = time.monotonic()
    planned, known = job.options.get("watched", COMMANDS), job.options.get("known", ())
    assert isinstance(planned, int)
    assert isinstance(known, tuple)
    turns = getattr(load(job.target, job.device), "turns", lambda contract: [contract])(job.contract)
    openers = [
        (contract, opener(job.target, job.device, Machine(contract, job.scope), reading_of(job))) for contract in turns
    ]
    performed = walked = 0
    seen: Failure | None = None
    while performed < planned:
        if cut():
            detail = f"cut short after {performed:,} of {planned:,} commands"
            return job.result(Verdict.UNDETERMINED, time.monotonic() - started, detail=detail)
        contract, open_target = openers[walked % len(openers)]
        found = walk(open_target, job.seed * 1_000_003 + walked)
        performed, walked = performed + len(found.commands), walked + 1
        progress(f"{performed:,} of {planned:,} commands")
        divergence = found.divergence
        if divergence is None:
            continue
        identifier = fingerprint(divergence.property, job.target, divergence.cause)
        if seen is not None and identifier in known:
            continue
        failure = _failure(job, contract, found, cut, progress)
        if identifier not in known:
            counts = {"commands": performed, "planned_commands": planned}
            return job.result(Verdict.REFUTED, time.monotonic() - started, failure=failure, counts=counts)
        seen = failure
    counts = {"commands": performed, "planned_commands": planned}
    detail = f"{performed:,} commands in {walked:,} walks"
    verdict = Verdict.PASSED if seen is None else Verdict.REFUTED
    return job.result(verdict, time.monotonic() - started, detail=detail, failure=seen, counts=counts)


def _failure(job: Job, contract: Contract, found: Walk, cut: Cut, progress: Progress) -> Failure:
    """What a walk has broken, made small."""
    assert found.divergence is not None
    small = shrunk_with_scope(
        with_modes(job.scope_name, job.scope, contract),
        lambda machine: opener(job.target, job.device, machine, reading_of(job)),
        found.commands,
        found.divergence,
        cut,
        progress,
    )
    remark = "" if small.run.divergence is not None else "(It did not occur when the same commands were run again.)"
    divergence = small.run.divergence or found.divergence
    return failure_of(
        small.variant, job.target, job.engine, job.device, small.commands, divergence, small.run.notes, small.minimal,
        remark,
    )  # fmt: skip
