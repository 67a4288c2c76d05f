"""Engines on targets that may end their process, or never come back: they run in a child, and a death is a violation.

What led to it stands in the journal. The commands are run again, each time in a child of its own, to shrink them and to
tell what they did before the end.
"""

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from functools import partial

from kvmodel import Machine
from kvproof.child import in_child
from kvproof.engines.run_of import Open, RunOf, failure_of, run_of
from kvproof.engines.shrink import Given, anything, shrunk
from kvproof.engines.verdict_of import verdict_of
from kvproof.failure import Minimal
from kvproof.job import Cut, Job, Progress, load_engine, reading_of
from kvproof.search.modes import Variant, with_modes
from kvproof.targets import guarded
from kvproof.targets.command import Command
from kvproof.targets.ending import until
from kvproof.targets.explain import crashed
from kvproof.targets.invariants import specification_of
from kvproof.targets.journal import Begun, Journal
from kvproof.targets.open_for import opener
from kvproof.targets.outcome import Crashed
from kvproof.targets.registry import MACHINE, is_ours
from kvproof.verdict import Result, Verdict

AS_GIVEN = ("replay", "tell")
"""Engines that perform the commands of a trace, and do not look for shorter ones."""


_AS_FOUND: Minimal = ""


def may_die(target: str) -> bool:
    """Whether a target's code is not ours, so that it runs in a process of its own, where there are such."""
    return not is_ours(target) and target != MACHINE and hasattr(os, "fork")


def run(job: Job, engine: Callable[[Progress], Result], progress: Progress, cut: Cut) -> Result:
    """The engine's result, or REFUTED by the commands that the target died of."""
    started = time.monotonic()
    journal = Journal()
    result = in_child(engine, journal, progress)
    if isinstance(result, Result):
        return result
    begun = journal.read()
    if begun is None:
        detail = f"{_death_of(job, result)}, and which commands led there is not known"
        return job.result(Verdict.ERROR, time.monotonic() - started, detail=detail)
    return _post_mortem(job, result, begun, progress, cut, started)


def run_apart(
    machine: Machine,
    open_target: Open,
    commands: Sequence[Command],
    cut: Callable[[], bool],
    given: Given = anything,
    impatient: bool = False,
) -> RunOf:
    """What `run_of` answers, of a run in a child. A death is a divergence, without what the commands did before.

    impatient: no call of the target is given longer than one that follows a hang
    """
    cut()  # it is the child that asks on
    return _run_apart(machine, open_target, commands, cut, given, impatient)[0]


def told_apart(machine: Machine, open_target: Open, commands: Sequence[Command], impatient: bool = False) -> RunOf:
    """The same, with what the commands did before."""
    run, death, calls = _run_apart(machine, open_target, commands, lambda: False, anything, impatient)
    if death is None:
        return run
    ended, again, _ = _run_apart(machine, until(open_target, calls, death), commands, lambda: False, anything)
    return run if again is not None or ended.divergence is None else ended


def _run_apart(
    machine: Machine,
    open_target: Open,
    commands: Sequence[Command],
    cut: Callable[[], bool],
    given: Given,
    impatient: bool = False,
) -> tuple[RunOf, Crashed | None, int]:
    """The run, and of what it died after how many calls."""
    journal = Journal()

    def call(progress: Progress) -> RunOf:
        if impatient:
            guarded.hurry()
        return run_of(machine, open_target, commands, cut, given)

    run = in_child(call, journal, lambda text: None)
    if isinstance(run, RunOf):
        return run, None, 0
    begun = journal.read()
    performed = () if begun is None else begun.commands
    found = crashed(performed[-1] if performed else None, run)
    calls = 0 if begun is None else begun.calls
    return RunOf(_reached(commands, performed), (), machine.initial(), found), run, calls


def _reached(commands: Sequence[Command], performed: Sequence[Command]) -> int:
    """How many of the commands had been come to: of a watched target those that are not possible are left out."""
    left = list(performed)
    for position, command in enumerate(commands):
        if not left:
            return position
        if command == left[0]:
            del left[0]
    return len(commands)


def _post_mortem(job: Job, death: Crashed, begun: Begun, progress: Progress, cut: Cut, started: float) -> Result:
    machine = Machine(begun.setting.contract, begun.setting.scope)
    specification_of(begun.setting)  # compiled once, and not in the child of each run to come
    open_target = opener(job.target, job.device, machine, reading_of(job))
    if job.engine == "tell":
        return _told(job, death, begun, progress, cut)
    found = crashed(begun.commands[-1] if begun.commands else None, death)
    commands, run, minimal = begun.commands, told_apart(machine, open_target, begun.commands), _AS_FOUND
    if run.divergence is not None and job.engine not in AS_GIVEN:
        impatient = death.error == "Hang"
        tried = 0

        def counted() -> bool:
            nonlocal tried
            tried += 1
            progress(f"{death.error}; shrinking what led there, {tried:,} runs")
            return cut()

        run_it = partial(run_apart, impatient=impatient)
        commands, _, minimal = shrunk(machine, open_target, commands, run.divergence, counted, run_it)
        run = told_apart(machine, open_target, commands, impatient)
    remark = ""
    if run.divergence is None:
        if death.error == "SIGKILL":
            detail = f"{_death_of(job, death)} (out of memory?); the same commands do not lead there again"
            return job.result(Verdict.ERROR, time.monotonic() - started, detail=detail)
        remark = "(It did not occur when the same commands were run again.)"
    contract, scope = begun.setting.contract, begun.setting.scope
    plain = contract == job.contract
    variant = Variant(job.scope_name, scope, contract) if plain else with_modes(job.scope_name, scope, contract)
    failure = failure_of(
        variant, job.target, job.engine, job.device, commands, run.divergence or found, run.notes, minimal, remark
    )
    verdict, failure = verdict_of(job, failure)
    return job.result(verdict, time.monotonic() - started, failure=failure)


def _told(job: Job, death: Crashed, begun: Begun, progress: Progress, cut: Cut) -> Result:
    """The story up to the death, of the same commands once more."""
    options = {**job.options, "ending": (begun.calls, death)}
    again = dataclasses.replace(job, options=options)
    told = in_child(lambda progress: load_engine(job.engine)(again, progress, cut), Journal(), progress)
    if isinstance(told, Result):
        return told
    detail = f"{_death_of(job, told)}, and elsewhere than before; kvproof replay says where"
    return job.result(Verdict.ERROR, 0.0, detail=detail)


def _death_of(job: Job, death: Crashed) -> str:
    return f"{job}: {death.error}, {death.message}"
