"""fuzz: Hypothesis gives enabled commands to a target beyond the scopes that can be searched exhaustively."""

import time
from itertools import cycle

from hypothesis import Phase, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from kvmodel import ACTIONS, Contract, Scope
from kvproof.engines import walks
from kvproof.engines.run_of import failure_of
from kvproof.engines.shrink import shrunk_with_scope
from kvproof.failure import Failure
from kvproof.job import Cut, Job, Progress
from kvproof.lockstep import HEALTH_CHECKS, Lockstep, Nonconforming, lockstep_class
from kvproof.obligations.runs import is_watched
from kvproof.search.modes import turns_at, with_modes
from kvproof.targets.declared import declared_contract, undeclared
from kvproof.targets.open_for import opener
from kvproof.targets.registry import load
from kvproof.targets.view import fields_of
from kvproof.verdict import Result, Verdict

COMMANDS = 6_000
"""Commands that a run plans, unless the job's options say otherwise."""

EXAMPLES, STEPS = 6, 150
"""Runs of one batch, and commands of a run at most. Between batches it is asked whether to go on."""


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Batches of runs until the planned count is reached, on past failures that `--known` lists.

    The modes take turns (`turns`), unless the job's contract has one that is not the default, or the target declares
    the only ones that it has. The same seed gives the same commands.
    """
    started = time.monotonic()
    target_class = load(job.target, job.device)
    reason = undeclared(target_class, job.scope, job.contract)
    if reason:
        return job.result(Verdict.SKIPPED, 0.0, detail=reason)
    if is_watched(target_class):
        return walks.run(job, progress, cut)
    planned = job.options.get("commands", COMMANDS)
    assert isinstance(planned, int)
    only = declared_contract(target_class) is not None
    contracts = [job.contract] if only else _contracts(job.contract, job.scope)
    classes = [lockstep_class(target_class, contract, job.scope) for contract in contracts]
    known = job.options.get("known", ())
    assert isinstance(known, tuple)
    seen: Failure | None = None
    performed = batches = 0
    for number, cls in enumerate(cycle(classes)):
        if performed >= planned:
            break
        if cut():
            detail = f"cut short after {performed:,} of {planned:,} commands"
            counts = {"commands": performed, "planned_commands": planned}
            return job.result(Verdict.UNDETERMINED, time.monotonic() - started, detail=detail, counts=counts)
        before = cls.performed
        failure = _batch(job, cls, job.seed * 1_000_003 + number, progress, cut)
        performed += cls.performed - before
        batches += 1
        progress(f"{performed:,} of {planned:,} commands")
        if failure is not None and failure.fingerprint in known:
            seen = seen or failure
        elif failure is not None:
            counts = {"commands": performed, "planned_commands": planned}
            return job.result(Verdict.REFUTED, time.monotonic() - started, failure=failure, counts=counts)
    fields = frozenset[str]().union(*(cls.fields for cls in classes))
    counts = {"commands": performed, "planned_commands": planned}
    counts |= {f"field:{name}": performed if name in fields else 0 for name in fields_of(job.scope)}
    counts |= {f"action:{kind.__name__}": sum(cls.taken[kind.__name__] for cls in classes) for kind in ACTIONS}
    detail = f"{performed:,} commands in {batches} batches"
    if seen is not None:
        return job.result(Verdict.REFUTED, time.monotonic() - started, detail=detail, failure=seen, counts=counts)
    return job.result(Verdict.PASSED, time.monotonic() - started, detail=detail, counts=counts)


def _contracts(contract: Contract, scope: Scope) -> list[Contract]:
    plain = Contract(contract.discipline, environment=contract.environment)
    return turns_at(contract, scope) if contract == plain else [contract]


def _batch(job: Job, cls: type[Lockstep], number: int, progress: Progress, cut: Cut) -> Failure | None:
    seeded = seed(number)(cls)
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        database=None,
        deadline=None,
        print_blob=False,
        phases=(Phase.generate,),
        suppress_health_check=HEALTH_CHECKS,
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(seeded, settings=chosen)
    except (Nonconforming, Flaky):
        assert cls.failed is not None
        return _failure(job, cls, progress, cut)
    return None


def _failure(job: Job, cls: type[Lockstep], progress: Progress, cut: Cut) -> Failure:
    """What was found, shrunk by us: that takes a fraction of the time that Hypothesis would take."""
    assert cls.failed is not None
    commands, divergence = cls.failed
    found = shrunk_with_scope(
        with_modes(job.scope_name, cls.scope, cls.contract),
        lambda machine: opener(job.target, job.device, machine),
        commands,
        divergence,
        cut,
        progress,
    )
    run = found.run
    remark = "" if run.divergence is not None else "(It did not occur when the same commands were run again.)"
    return failure_of(
        found.variant, job.target, job.engine, job.device, found.commands, run.divergence or divergence, run.notes,
        found.minimal, remark,
    )  # fmt: skip
