"""conform: a target held against the machine, in lockstep.

On a target whose state can be copied out (`ledger`) the product search takes every command from every pair of states.
On one with real threads and bytes (`host`) gated walks take every transition, or every pair of action and phase.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kvmodel import Machine, State
from kvproof.engines.run_of import failure_of, run_of
from kvproof.failure import Failure, fingerprint
from kvproof.job import Cut, Job, Progress
from kvproof.search.modes import Variant, variants
from kvproof.search.phases import Label, pairs_of
from kvproof.search.product import Product, Searched
from kvproof.search.walks import Pairs, Transitions, named
from kvproof.targets import naming
from kvproof.targets.command import Command
from kvproof.targets.explain import compared, explain
from kvproof.targets.naming import Divergence
from kvproof.targets.outcome import Crashed
from kvproof.targets.registry import load
from kvproof.targets.target import Offering, Restarting, Snapshotting, Target, opened
from kvproof.targets.view import FIELDS, View, declared, offers_in
from kvproof.targets.wording import command_of
from kvproof.verdict import Result, Verdict

PAIRS_STATES = 60_000
"""States that are explored to find the pairs of action and phase, unless the job's options say otherwise."""


class Found(NamedTuple):
    """What one variant has shown. amounts: states, edges and so on; failure: None if nothing is wrong."""

    finished: bool
    failure: Failure | None
    amounts: dict[str, int]
    detail: str


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """One scope, or with option `modes` (`alone`, `pairs`) its variants. On a device without snapshots option `cover`
    says what the walks take: `transitions`, or `pairs` of action and phase."""
    started = time.monotonic()
    target_class = load(job.target, job.device)
    base = Variant(job.scope_name, job.scope, job.contract)
    wanted = job.options.get("modes")
    todo = variants(*base, pairs=wanted == "pairs") if wanted else [base]
    totals: dict[str, int] = {}
    details: list[str] = []
    for variant in todo:
        check = _searched if isinstance(target_class, type) and issubclass(target_class, Snapshotting) else _walked
        found = check(job, variant, target_class, progress, cut)
        for name, count in found.amounts.items():
            totals[name] = totals.get(name, 0) + count
        details.append(found.detail)
        if found.failure is not None or not found.finished:
            verdict = Verdict.REFUTED if found.failure is not None else Verdict.UNDETERMINED
            return _result(job, verdict, started, totals, f"{variant.name}: {found.detail}", found.failure)
    detail = f"{len(todo)} variants, {totals.get('pairs', 0):,} pairs" if wanted else details[0]
    return _result(job, Verdict.PROVED, started, totals, detail, None)


def _result(
    job: Job, verdict: Verdict, started: float, totals: dict[str, int], detail: str, failure: Failure | None
) -> Result:
    return job.result(
        verdict,
        time.monotonic() - started,
        states=totals.get("pairs", totals.get("states")),
        transitions=totals.get("edges"),
        detail=detail,
        failure=failure,
        counts={name: count for name, count in totals.items() if name not in ("pairs", "states")},
    )


def _searched(job: Job, variant: Variant, target_class: type[Target], progress: Progress, cut: Cut) -> Found:
    machine = Machine(variant.contract, variant.scope)
    target = opened(target_class, machine.setting)
    assert isinstance(target, Snapshotting)
    composites = len(job.scope.prompts) == 1 and (not job.options.get("modes") or variant.name.endswith("+pressure"))
    product = Product(machine, target, composites, _known(job))  # type: ignore[arg-type]
    try:
        searched = product.search(cut, lambda text: progress(f"{variant.name}: {text}"))
    finally:
        target.close()
    amounts = {"pairs": searched.pairs, "machine states": searched.states, "edges": searched.edges}
    amounts |= {f"action:{name}": count for name, count in searched.actions.items()}
    amounts |= {f"field:{name}": searched.edges if name in searched.fields else 0 for name in FIELDS}
    detail = f"{searched.pairs / max(searched.states, 1):.3f} control states for each state of the machine"
    failure = _failure_of_search(job, variant, machine, target_class, searched)
    if failure is None and not searched.finished:
        detail = f"cut short after {searched.pairs:,} pairs, {searched.edges:,} edges"
    return Found(searched.finished, failure, amounts, detail)


def _known(job: Job) -> Callable[[Divergence], bool]:
    """Whether a divergence has a fingerprint that `--known` lists: the search goes on past it."""
    listed = job.options.get("known", ())
    assert isinstance(listed, tuple)
    return lambda divergence: fingerprint(divergence.property, job.target, divergence.cause) in listed


def _failure_of_search(
    job: Job, variant: Variant, machine: Machine, target_class: type[Target], searched: Searched
) -> Failure | None:
    """The failure, told from a run of its own: the search continues from snapshots, a replay starts at the beginning."""
    if searched.divergence is None:
        return None
    again = run_of(machine, lambda: opened(target_class, machine.setting), searched.commands, lambda: False)
    remark = ""
    divergence = searched.divergence
    if again.divergence is None:
        remark = "(It did not occur when the same commands were run from the start.)"
    else:
        divergence = again.divergence
    return failure_of(
        variant, job.target, job.engine, job.device, searched.commands[: max(again.done, 0)] if not remark else searched.commands,
        divergence, again.notes, "shortest", remark,
    )  # fmt: skip


class Walker:
    """One target, walked along actions of the machine, every command explained and every byte compared."""

    def __init__(self, machine: Machine, target_class: type[Target]) -> None:
        self.machine = machine
        self.target_class = target_class
        self.target = opened(target_class, machine.setting)
        self._begin()

    def restart(self) -> None:
        """Begin another walk, on a target as fresh as a new one."""
        if isinstance(self.target, Restarting):
            self.target.restart()
        else:
            self.target.close()
            self.target = opened(self.target_class, self.machine.setting)
        self._begin()

    def _begin(self) -> None:
        machine = self.machine
        self.state = machine.initial()
        self.commands: list[Command] = []
        self.divergence = compared(machine, self.state, None, None, self.state, self.target.view())

    def hurry(self, commands: Sequence[Command], state: State) -> None:
        """Perform commands that earlier walks have explained, and be in `state` then; only crashes are looked for."""
        self.commands.extend(commands)
        for command in commands:
            outcome = self.target.perform(command)
            if isinstance(outcome, Crashed):
                explained = explain(self.machine, state, command, outcome, View(), False)
                assert isinstance(explained, Divergence)
                self.divergence = explained
                return
        self.state = state

    def take(self, command: Command) -> bool:
        """Perform one command; False if it cannot be accounted for."""
        machine, target = self.machine, self.target
        self.commands.append(command)
        outcome = target.perform(command)
        explained = explain(machine, self.state, command, outcome, target.view(), target.exact)
        if isinstance(explained, Divergence):
            self.divergence = explained
            return False
        self.state = explained.state
        if isinstance(target, Offering):
            expected, seen = offers_in(machine, self.state), target.offers()
            if expected != seen:
                self.divergence = naming.offers(machine, self.state, expected, seen)
                return False
        return True


def _walked(job: Job, variant: Variant, target_class: type[Target], progress: Progress, cut: Cut) -> Found:
    machine = Machine(variant.contract, variant.scope)
    if job.options.get("cover") == "pairs":
        return _pairs_walked(job, variant, machine, target_class, progress, cut)
    transitions = Transitions(machine)
    steps = walks = 0
    amounts: dict[str, int] = {}
    walker = Walker(machine, target_class)
    fields = declared(walker.target.view()) | {"offers"}
    try:
        for walk in transitions.walks():
            taken = transitions.total - transitions.to_take
            walks += 1
            if not walks & 15:
                progress(f"{variant.name}: {taken:,}/{transitions.total:,} transitions")
                if cut():
                    detail = f"cut short: {taken:,} of {transitions.total:,} transitions taken"
                    return Found(False, None, {"edges": taken}, detail)
            walker.restart()
            number = walk.number
            walker.hurry(walk.commands, walk.state)
            while walker.divergence is None and (edge := transitions.take(number)) is not None:
                action, number = edge
                amounts[f"action:{type(action).__name__}"] = amounts.get(f"action:{type(action).__name__}", 0) + 1
                walker.take(command_of(named(machine, walker.state, action)))
            steps += len(walker.commands)
            if walker.divergence is not None:
                failure = _failure_of_walk(job, variant, machine, target_class, walker)
                return Found(False, failure, {"edges": taken}, "")
    finally:
        walker.target.close()
    amounts |= {"states": len(transitions.states), "edges": transitions.total, "planned_edges": transitions.total}
    amounts |= {"commands": steps, **{f"field:{name}": steps if name in fields else 0 for name in FIELDS}}
    return Found(True, None, amounts, f"every transition, in {walks:,} walks of {steps:,} commands; all bytes checked")


def _pairs_walked(
    job: Job, variant: Variant, machine: Machine, target_class: type[Target], progress: Progress, cut: Cut
) -> Found:
    limit = job.options.get("states", PAIRS_STATES)
    assert isinstance(limit, int)
    pairs = Pairs(machine, limit, cut)
    steps = 0
    covered = set[Label]()
    walker = Walker(machine, target_class)
    try:
        for done, (label, way) in enumerate(pairs.ways.items()):
            progress(f"{variant.name}: {done:,}/{len(pairs.ways):,} pairs of action and phase")
            if label in covered:
                continue
            walker.restart()
            for action in way:
                steps += 1
                action = named(machine, walker.state, action)
                covered.update(pairs_of(walker.state, action))
                if walker.divergence is not None or not walker.take(command_of(action)):
                    failure = _failure_of_walk(job, variant, machine, target_class, walker)
                    return Found(False, failure, {"edges": len(covered)}, "")
            if cut():
                detail = f"cut short: {len(covered):,} of {len(pairs.ways):,} pairs of action and phase"
                return Found(False, None, {"edges": len(covered)}, detail)
    finally:
        walker.target.close()
    where = "all" if pairs.finished else f"the first {pairs.states:,}"
    detail = f"every pair of action and phase of {where} states, {steps:,} commands; all bytes checked"
    amounts = {"states": pairs.states, "edges": len(covered), "planned_edges": len(pairs.ways), "commands": steps}
    return Found(True, None, amounts, detail)


def _failure_of_walk(
    job: Job, variant: Variant, machine: Machine, target_class: type[Target], walker: Walker
) -> Failure:
    """The failure of a walk. Walks are long: the commands are shrunk before they are shown."""
    from kvproof.engines.shrink import shrunk

    assert walker.divergence is not None
    open_target: Callable[[], Target] = lambda: opened(target_class, machine.setting)  # noqa: E731
    commands, run, minimal = shrunk(machine, open_target, walker.commands, walker.divergence, lambda: False)
    divergence = run.divergence or walker.divergence
    remark = "" if run.divergence else "(It did not occur when the same commands were run again.)"
    return failure_of(variant, job.target, job.engine, job.device, commands, divergence, run.notes, minimal, remark)
