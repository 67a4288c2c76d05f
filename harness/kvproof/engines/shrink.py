"""shrink: make a failing sequence smaller while it fails with the same fingerprint."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kvmodel import Machine, State
from kvproof.engines.run_of import Open, RunOf, failure_of, run_of
from kvproof.engines.verdict_of import verdict_of
from kvproof.failure import Minimal, fingerprint
from kvproof.job import Cut, Job, Progress, reading_of
from kvproof.obligations.runs import is_watched
from kvproof.scopes import name_of
from kvproof.search.modes import Variant, with_modes
from kvproof.shrinking.attempt import Attempt, OpenAt
from kvproof.shrinking.smallest import FOLLOWED, WATCHED, Manner, Shrinking
from kvproof.targets.command import Command
from kvproof.targets.declared import declared_contract
from kvproof.targets.divergence import Divergence
from kvproof.targets.guarded import started
from kvproof.targets.open_for import not_taken, opener
from kvproof.targets.outcome import Crashed
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
    failed: list[RunOf] = []

    def fails(candidate: Sequence[Command], given: Given) -> bool:
        run = run_it(machine, open_target, candidate, cut, given)
        same = run.divergence is not None and run.done == len(candidate) and _same(run.divergence) == wanted
        if same:
            failed.append(run)
        return same

    given = next((each for each in (may_be_given, anything) if fails(commands, each)), None)
    if given is None:
        return tuple(commands), run_it(machine, open_target, commands, cut, anything), ""
    shorter = shrink(commands, lambda candidate: fails(candidate, given), cut)
    return shorter, failed[-1], "shrunk"


def anything(machine: Machine, state: State, command: Command) -> bool:
    """Every command may be given."""
    return True


def _same(divergence: Divergence) -> str:
    return fingerprint(divergence.property, "", divergence.cause)


class Shrunk(NamedTuple):
    """A violation with the fewest commands, at the smallest scope, that were found for it, and its run."""

    variant: Variant
    commands: tuple[Command, ...]
    run: RunOf
    minimal: Minimal


def shrunk_with_scope(
    variant: Variant,
    open_at: OpenAt,
    commands: Sequence[Command],
    divergence: Divergence,
    cut: Callable[[], bool],
    told: Progress,
) -> Shrunk:
    """The same violation in fewer commands at a smaller scope, in fewer modes. What hangs, or needs commands that
    nobody would give, stays at its scope: it is only made shorter."""
    machine = Machine(variant.contract, variant.scope)
    open_target = open_at(machine)
    opened = _class_of(open_target)
    manner = WATCHED if is_watched(opened) else FOLLOWED
    whole = "Hang" in divergence.cause
    found = None if whole else _as_given(variant, open_at, commands, divergence, cut, manner)
    if found is None:
        shorter, run, minimal = shrunk(machine, open_target, commands, divergence, cut)
        if not whole and run.divergence is not None:
            found = _as_given(variant, open_at, shorter, divergence, cut, manner)
        if found is None:
            return Shrunk(variant, shorter, run, minimal)
    has_other_modes = declared_contract(opened) is None
    smallest = Shrinking(open_at, found, cut, told, manner, has_other_modes).smallest()
    plan, run = smallest.attempt
    if (plan.scope, plan.contract) != (variant.scope, variant.contract):
        variant = with_modes(name_of(plan.scope), plan.scope, plan.contract)
    return Shrunk(variant, plan.commands, run, smallest.minimal)


def _as_given(
    variant: Variant,
    open_at: OpenAt,
    commands: Sequence[Command],
    divergence: Divergence,
    cut: Callable[[], bool],
    manner: Manner,
) -> Attempt | None:
    """The same violation by those of the commands that clients and environments may give, if it is one."""
    found = manner.performed(variant.contract, open_at, variant.scope, commands, cut)
    found = manner.attempted(open_at, found.plan, cut)
    again = found.run.divergence
    return found if again is not None and _same(again) == _same(divergence) else None


def _class_of(open_target: Open) -> type[Any]:
    """The class of what is opened; NoneType if it cannot be."""
    target = started(open_target)
    if isinstance(target, Crashed):
        return type(None)
    target.close()
    return type(target)


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Shrink the trace in option `trace`. REFUTED with the smaller failure, perhaps `cut short`; FIXED if it does not
    fail."""
    began = time.monotonic()
    trace = job.options["trace"]
    assert isinstance(trace, Trace)
    reason = not_taken(job.target, job.device, trace.commands)
    if reason:
        return job.result(Verdict.ERROR, 0.0, detail=reason)

    def open_at(machine: Machine) -> Open:
        return opener(job.target, job.device, machine, reading_of(job))

    machine = Machine(job.contract, job.scope)
    whole = run_of(machine, open_at(machine), trace.commands, cut)
    if whole.beyond:
        return job.result(Verdict.ERROR, time.monotonic() - began, detail=whole.beyond)
    if whole.divergence is None:
        verdict = Verdict.UNDETERMINED if cut() else Verdict.FIXED
        return job.result(verdict, time.monotonic() - began, detail="it does not fail any more")
    variant = Variant(job.scope_name, job.scope, job.contract)
    found = shrunk_with_scope(variant, open_at, trace.commands[: whole.done], whole.divergence, cut, progress)
    failure = failure_of(
        found.variant, job.target, job.engine, job.device, found.commands, found.run.divergence or whole.divergence,
        found.run.notes, found.minimal,
    )  # fmt: skip
    detail = "cut short, so that it might be smaller" if cut() else ""
    verdict, failure = verdict_of(job, failure)
    return job.result(verdict, time.monotonic() - began, failure=failure, detail=detail)
