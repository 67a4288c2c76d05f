"""tell: perform the commands of a trace again, and keep how everything stands after each of them."""

import dataclasses
import time

from kvmodel import Machine, State
from kvproof.engines.run_of import failure_of, run_of
from kvproof.engines.verdict_of import verdict_of
from kvproof.job import Cut, Job, Progress
from kvproof.obligations.runs import is_watched
from kvproof.report.failure_text import reasons
from kvproof.report.story import Picture, Step, Story
from kvproof.search.modes import Variant
from kvproof.targets.command import describe_all
from kvproof.targets.open_for import not_taken, opener_of
from kvproof.targets.picture import MOST_CELLS, cells_of, lanes_of, picture_of
from kvproof.targets.registry import MACHINE, load
from kvproof.trace.trace import Trace
from kvproof.verdict import Result, Verdict

MOST_STEPS = 5_000
"""How many commands are told: a page with more is read by nobody."""

AROUND = 3
"""Pictures beside those after each command: before the first, and both sides where they part."""


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """PASSED or REFUTED as replay says, with the story. ERROR as replay says, and for a trace that is too long."""
    started = time.monotonic()
    trace = job.options["trace"]
    assert isinstance(trace, Trace)
    reason = not_taken(job.target, job.device, trace.commands)
    if not reason and len(trace.commands) > MOST_STEPS:
        reason = (
            f"the trace has {len(trace.commands):,} commands, and at most {MOST_STEPS:,} are shown; shrink it first"
        )
    cells = cells_of(job.scope) * (len(trace.commands) + AROUND)
    if not reason and cells > MOST_CELLS:
        reason = (
            f"the trace has {len(trace.commands):,} commands at a scope with {cells_of(job.scope):,} things to be "
            f"drawn, and at most {MOST_CELLS:,} cells are; shrink it first"
        )
    if reason:
        return job.result(Verdict.ERROR, 0.0, detail=reason)
    machine = Machine(job.contract, job.scope)
    states = [machine.initial()]
    run = run_of(machine, opener_of(job, machine), trace.commands, cut, told=states.append)
    seconds = time.monotonic() - started
    if run.beyond:
        return job.result(Verdict.ERROR, seconds, detail=run.beyond)
    if run.divergence is None and run.done < len(trace.commands):
        return job.result(Verdict.UNDETERMINED, seconds, detail=f"cut short after {run.done:,} commands")
    divergence = run.divergence
    after = states[1:]
    both = []
    if divergence is not None:
        both = [side for side in (divergence.contract_state, divergence.target_state) if side is not None]
    # The last command was not accounted for: what is left is what the contract says.
    after += [both[0] if both else states[-1]] * (run.done - len(after))
    words = describe_all(trace.commands[: run.done], job.scope)
    notes = (*run.notes, *[""] * run.done)
    # Of a watched target nothing is known but what it was told and what it answered: no machine goes with it.
    known = job.target == MACHINE or not is_watched(load(job.target, job.device))

    def picture(state: State) -> Picture:
        return picture_of(machine, state) if known else {}

    story = Story(
        title=f"{job.target}{f' on {job.device}' if job.device else ''}, {job.discipline}, {job.scope_name}",
        lanes=lanes_of(machine, [*states, *both]) if known else (),
        start=picture(states[0]),
        steps=tuple(Step(word, note, picture(state)) for word, note, state in zip(words, notes, after, strict=False)),
    )
    if divergence is None:
        result = job.result(Verdict.PASSED, seconds, detail="all accounted for")
        return dataclasses.replace(result, story=story)
    failure = failure_of(
        Variant(job.scope_name, job.scope, job.contract),
        job.target, job.engine, job.device, trace.commands[: run.done], divergence, run.notes, "",
    )  # fmt: skip
    verdict, failure = verdict_of(job, failure)
    story = story._replace(
        property=divergence.property,
        sentence=failure.sentence,
        facts=tuple(zip(failure.contract_lines, failure.target_lines, strict=False)),
        reasons=" ".join(reasons(failure)),
        contract=None if divergence.contract_state is None else picture(divergence.contract_state),
        target=None if divergence.target_state is None else picture(divergence.target_state),
    )
    return dataclasses.replace(job.result(verdict, seconds, failure=failure), story=story)
