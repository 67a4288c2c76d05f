"""shrink: drop commands from a failing sequence while it fails with the same fingerprint."""

import time
from collections.abc import Callable, Sequence

from kvmodel import Machine, State
from kvproof.engines.run_of import Open, RunOf, failure_of, run_of
from kvproof.failure import Minimal, fingerprint
from kvproof.job import Cut, Job, Progress
from kvproof.search.modes import Variant
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.open_for import not_taken, opener
from kvproof.targets.wording import may_be_given
from kvproof.trace.shrink import shrink
from kvproof.trace.trace import Trace
from kvproof.verdict import Result, Verdict

Given = Callable[[Machine, State, Command], bool]
"""Whether a command may be given in a state of the machine."""

Runner = Callable[[Machine, Open, Sequence[Command], Callable[[], bool], Given], RunOf]
"""Performs commands, as `run_of` does."""


def shrunk(
    machine: Machine,
    open_target: Open,
    commands: Sequence[Command],
    divergence: Divergence,
    cut: Callable[[], bool],
    run_it: Runner = run_of,
) -> tuple[tuple[Command, ...], RunOf, Minimal]:
    """A shorter sequence that ends in the same violation, and its run. Unshrunk if it does not fail again.

    Where all commands were such as clients and environments may give, so are those that are left: a target may well
    fail in the same way on a command that nobody would give it.
    """
    wanted = _same(divergence)
    given: Given = may_be_given

    def fails(candidate: Sequence[Command]) -> bool:
        run = run_it(machine, open_target, candidate, cut, given)
        return run.divergence is not None and run.done == len(candidate) and _same(run.divergence) == wanted

    if not fails(commands):
        given = anything
    if not fails(commands):
        return tuple(commands), run_it(machine, open_target, commands, cut, anything), ""
    shorter = shrink(commands, fails, cut)
    return shorter, run_it(machine, open_target, shorter, lambda: False, anything), "shrunk"


def anything(machine: Machine, state: State, command: Command) -> bool:
    """Every command may be given."""
    return True


def _same(divergence: Divergence) -> str:
    return fingerprint(divergence.property, "", divergence.cause)


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Shrink the trace in option `trace`. REFUTED with the shorter failure; FIXED if it does not fail."""
    started = time.monotonic()
    trace = job.options["trace"]
    assert isinstance(trace, Trace)
    reason = not_taken(job.target, job.device, trace.commands)
    if reason:
        return job.result(Verdict.ERROR, 0.0, detail=reason)
    machine = Machine(job.contract, job.scope)
    open_target = opener(job.target, job.device, machine)
    tried = 0

    def counted() -> bool:
        nonlocal tried
        tried += 1
        progress(f"{tried:,} commands run")
        return cut()

    whole = run_of(machine, open_target, trace.commands, counted)
    if whole.beyond:
        return job.result(Verdict.ERROR, time.monotonic() - started, detail=whole.beyond)
    if whole.divergence is None:
        verdict = Verdict.UNDETERMINED if cut() else Verdict.FIXED
        return job.result(verdict, time.monotonic() - started, detail="it does not fail any more")
    commands, run, minimal = shrunk(machine, open_target, trace.commands[: whole.done], whole.divergence, counted)
    failure = failure_of(
        Variant(job.scope_name, job.scope, job.contract),
        job.target, job.engine, job.device, commands, run.divergence or whole.divergence, run.notes, minimal,
    )  # fmt: skip
    return job.result(Verdict.REFUTED, time.monotonic() - started, failure=failure)
