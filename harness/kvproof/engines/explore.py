"""explore: every state of the reference machine at a scope, every property judged, shortest counterexamples."""

import time
from contextlib import nullcontext
from typing import NamedTuple

from kvmodel import Machine
from kvproof.cores import sharing
from kvproof.failure import Failure
from kvproof.job import Cut, Job, Progress
from kvproof.search.coverage import recording
from kvproof.search.graph import Explored, Graph, Violation
from kvproof.search.modes import Variant, variants
from kvproof.search.names import retold
from kvproof.targets.command import Command
from kvproof.targets.wording import command_of
from kvproof.verdict import Result, Verdict

MACHINE = "machine"
"""How traces name the reference machine as the target."""


class _Sum(NamedTuple):
    states: int
    transitions: int
    counts: dict[str, int]


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Explore one scope, or with option `modes` every variant of it: each mode and fault `alone`, or also in `pairs`.

    With option `coverage` the outcomes of the machine's guards are counted too; it may say `one prompt`, and then
    larger scopes, which it would slow down, do without.
    """
    started = time.monotonic()
    total = _Sum(0, 0, {})
    depth = 0
    wanted = job.options.get("modes")
    todo = [Variant(job.scope_name, job.scope, job.contract)]
    if wanted:
        todo = variants(job.scope_name, job.scope, job.contract, pairs=wanted == "pairs")
    for done, variant in enumerate(todo):
        explored, counts = _explored(job, variant, progress, cut)
        total = _added(total, explored, counts)
        depth = max(depth, explored.depth)
        seconds = time.monotonic() - started
        if explored.violation is not None:
            failure = _failure(job, variant, explored.violation)
            return job.result(
                Verdict.REFUTED,
                seconds,
                states=total.states,
                transitions=total.transitions,
                failure=failure,
                counts=total.counts,
            )
        if not explored.finished:
            detail = f"cut short after {explored.states:,} states of {variant.name}"
            if wanted:
                detail += f", {done} of {len(todo)} variants done"
            return job.result(
                Verdict.UNDETERMINED,
                seconds,
                states=total.states,
                transitions=total.transitions,
                detail=detail,
                counts=total.counts,
            )
    detail = f"{len(todo)} variants" if wanted else f"depth {depth}"
    return job.result(
        Verdict.PROVED,
        time.monotonic() - started,
        states=total.states,
        transitions=total.transitions,
        detail=detail,
        counts=total.counts,
    )


def _explored(job: Job, variant: Variant, progress: Progress, cut: Cut) -> tuple[Explored, dict[str, int]]:
    wanted = job.options.get("coverage")
    counting = bool(wanted) and (wanted != "one prompt" or len(variant.scope.prompts) == 1)
    processes = 1 if counting else sharing()  # what another process evaluates is not counted here
    graph = Graph(Machine(variant.contract, variant.scope), bool(job.options.get("modes")), processes)
    with recording() if counting else nullcontext(dict[str, int]()) as guards:
        explored = graph.explore(cut, lambda text: progress(f"{variant.name}: {text}"))
    return explored, {f"guard:{name}": count for name, count in guards.items()}


def _added(total: _Sum, explored: Explored, guards: dict[str, int]) -> _Sum:
    counts = dict(total.counts)
    for name, count in (*((f"action:{kind}", count) for kind, count in explored.actions.items()), *guards.items()):
        counts[name] = counts.get(name, 0) + count
    return _Sum(total.states + explored.states, total.transitions + explored.transitions, counts)


def _failure(job: Job, variant: Variant, violation: Violation) -> Failure:
    machine = Machine(variant.contract, variant.scope)
    commands: list[Command] = [command_of(action) for action in retold(machine, violation.path)]
    cycle = (
        "; then for ever: " + ", ".join(str(command_of(action)) for action in violation.cycle)
        if violation.cycle
        else ""
    )
    return Failure(
        property=violation.property,
        sentence=violation.sentence[:1].upper() + violation.sentence[1:] + cycle + ".",
        target=MACHINE,
        discipline=job.discipline,
        scope_name=variant.name,
        scope=variant.scope,
        engine=job.engine,
        commands=tuple(commands),
        step=max(len(commands) - 1, 0),
        rule=f"kvspecs: {violation.property}",
        cause=(violation.property, commands[-1].verb if commands else "initial"),
        minimal="shortest",
        contract=variant.contract,
    )
