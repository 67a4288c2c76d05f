"""conform: a target held against the machine, in lockstep.

On a target whose state can be copied out (`ledger`) the product search takes every command from every pair of states.
On one with real threads and bytes (`host`) gated walks take every transition, or every pair of action and phase.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from kvmodel import Contract, Machine, State
from kvproof.cores import sharing
from kvproof.engines.run_of import failure_of, run_of
from kvproof.failure import Failure, fingerprint
from kvproof.job import Cut, Job, Progress
from kvproof.scopes import SCOPES
from kvproof.search import ways
from kvproof.search.modes import Variant
from kvproof.search.narrow import NARROW, variants_of
from kvproof.search.phases import Label, pairs_of
from kvproof.search.product import ASKED_AT_FIRST, ASKED_OF_A_PART, THEN_ONE_IN, Product, Searchable, Searched
from kvproof.search.walks import Pairs, Transitions, named
from kvproof.targets import journal
from kvproof.targets.command import Command
from kvproof.targets.declared import undeclared
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed, explain
from kvproof.targets.guarded import carried_out, performed, started
from kvproof.targets.invariants import unspecified
from kvproof.targets.judging import at_start, differing_offers
from kvproof.targets.outcome import Crashed
from kvproof.targets.registry import is_ours, load
from kvproof.targets.target import Discounting, Restarting, Snapshotting, Target, opened
from kvproof.targets.view import compared_fields, fields_of
from kvproof.targets.wording import action_of, command_of
from kvproof.verdict import Result, Verdict


class Found(NamedTuple):
    """What one variant has shown. amounts: states, edges and so on; failure: None if nothing is wrong."""

    finished: bool
    failure: Failure | None
    amounts: dict[str, int]
    detail: str


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """One scope, or with option `modes` its variants (`kvproof.search.narrow.variants_of`). With option `late` a pair
    stands for those in which more reports of forgotten jobs have come (`kvproof.search.allowance`). On a device without
    snapshots option `cover` says what the walks take: `transitions`, or `pairs` of action and phase."""
    started = time.monotonic()
    target_class = load(job.target, job.device)
    reason = _not_for(target_class) or undeclared(target_class, job.scope, job.contract)
    if reason:
        return job.result(Verdict.SKIPPED, 0.0, detail=reason)
    base = Variant(job.scope_name, job.scope, job.contract)
    wanted = job.options.get("modes")
    todo = variants_of(base, wanted)
    todo = [variant for variant in todo if not undeclared(target_class, variant.scope, variant.contract)]
    totals: dict[str, int] = {}
    details: list[str] = []
    for variant in todo:
        check = _searched if _has_snapshots(target_class) else _walked
        found = check(job, variant, target_class, progress, cut)
        for name, count in found.amounts.items():
            totals[name] = totals.get(name, 0) + count
        details.append(found.detail)
        if found.failure is not None or not found.finished:
            verdict = Verdict.REFUTED if found.failure is not None else Verdict.UNDETERMINED
            return _result(job, verdict, started, totals, f"{variant.name}: {found.detail}", found.failure)
    asked, passed_over = totals.get("pairs with invariants", 0), totals.get("pairs without invariants", 0)
    sample = f"invariants of the proofs at {asked:,}{f' of {asked + passed_over:,}' if passed_over else ''}"
    stood_for = totals.get("pairs stood for", 0)
    late = f", {stood_for:,} of them followed for their late reports alone" if stood_for else ""
    detail = f"{len(todo)} variants, {totals.get('pairs', 0):,} pairs{late}; {sample}" if wanted else details[0]
    return _result(job, Verdict.PROVED, started, totals, detail, None)


def _has_snapshots(target_class: type) -> bool:
    return issubclass(target_class, Snapshotting)


DECISIONS = frozenset({"lookup", "admit", "grow", "preempt_pressure", "launch", "wake", "finish"})
"""Verbs that ask a scheduler for one decision, which one. The machine's transitions are made of these."""


def _not_for(target_class: type[Target]) -> str:
    """Why a class cannot follow the machine transition by transition; empty: it can."""
    if not getattr(target_class, "verbs", DECISIONS) >= DECISIONS:
        return "takes no single decisions"
    if not getattr(target_class, "exact", True):
        return "chooses in its own way"
    return ""


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
    target = started(lambda: opened(target_class, machine.setting))
    if isinstance(target, Crashed):
        broken = failure_of(variant, job.target, job.engine, job.device, (), crashed(None, target), (), "shortest")
        return Found(False, broken, {}, "")
    assert isinstance(target, Snapshotting)
    composites = len(job.scope.prompts) == 1 and (not job.options.get("modes") or variant.name.endswith("+pressure"))
    kept = ways.read(job.discipline, job.scope_name) if _is_named(job) and not job.options.get("modes") else None
    met: set[Label] | None = None if kept is None else set()
    late = bool(job.options.get("late")) and isinstance(target, Discounting)
    allowance = late or bool(job.options.get("modes"))
    processes = sharing() if is_ours(job.target) else 1  # code that is not ours may have threads
    asked = ASKED_OF_A_PART if job.options.get("modes") in NARROW else ASKED_AT_FIRST
    product = Product(
        machine, cast(Searchable, target), composites, _known(job), met, allowance, late, processes, asked
    )
    try:
        searched = product.search(cut, lambda text: progress(f"{variant.name}: {text}"))
    finally:
        target.close()
    amounts = {"pairs": searched.pairs, "machine states": searched.states, "edges": searched.edges}
    amounts |= {f"action:{name}": count for name, count in searched.actions.items()}
    amounts |= {f"field:{name}": searched.edges if name in searched.fields else 0 for name in fields_of(variant.scope)}
    amounts["pairs stood for"] = product.stood_for
    amounts["pairs with invariants"] = product.asked
    amounts["pairs without invariants"] = product.passed_over
    detail = f"{searched.pairs / max(searched.states, 1):.3f} control states for each state of the machine"
    if late:
        detail = f"of {searched.pairs:,} pairs {product.stood_for:,} were followed for their late reports alone"
    detail += f"; {_of_the_proofs(product)}"
    failure = _failure_of_search(job, variant, machine, target_class, searched)
    if failure is None and not searched.finished:
        detail = f"cut short after {searched.pairs:,} pairs, {searched.edges:,} edges"
    elif failure is None and kept is not None and met is not None:
        fresh = frozenset(map(ways.written, met))
        if kept.pairs != fresh or (not late and kept.states != searched.states):
            said = (
                f"{STALE}: {len(kept.pairs)} pairs of {kept.states:,} states are kept, and there are {len(fresh)} of "
            )
            return Found(False, None, amounts, f"{said}{searched.states:,}")
    return Found(searched.finished, failure, amounts, detail)


def _of_the_proofs(product: Product) -> str:
    """Which invariants of the proofs were asked of the target's own state, and at how many pairs, or why none."""
    invariants = product.invariants
    if not product.gives_own_state:
        return "no invariants of the proofs: the target does not give its own state"
    if invariants.specification is None:
        return f"no invariants of the proofs: {unspecified(invariants.setting)}"
    sample = f", the first {ASKED_AT_FIRST:,} and one in {THEN_ONE_IN} of the rest" if product.passed_over else ""
    number = len(invariants.specification.invariants)
    return f"{number} invariants of the proofs were asked at {product.asked:,} pairs{sample}"


def _known(job: Job) -> Callable[[Divergence], bool]:
    """Whether a divergence has a fingerprint that `--known` lists: the search goes on past it."""
    listed = job.options.get("known", ())
    assert isinstance(listed, tuple)
    return lambda divergence: fingerprint(divergence.property, job.target, divergence.cause) in listed


def _failure_of_search(
    job: Job, variant: Variant, machine: Machine, target_class: type[Target], searched: Searched
) -> Failure | None:
    """The failure, told from a run of its own: the search goes on from snapshots, a replay starts at the beginning."""
    if searched.divergence is None:
        return None
    again = run_of(machine, lambda: opened(target_class, machine.setting), searched.commands, lambda: False)
    remark = ""
    commands, divergence = searched.commands, searched.divergence
    if again.divergence is None:
        remark = "(It did not occur when the same commands were run from the start.)"
    else:
        commands, divergence = commands[: again.done], again.divergence
    return failure_of(
        variant, job.target, job.engine, job.device, commands, divergence, again.notes, "shortest", remark
    )


class Walker:
    """One target, walked along actions of the machine, every command explained and every byte compared."""

    def __init__(self, machine: Machine, target_class: type[Target]) -> None:
        self.machine = machine
        self.target_class = target_class
        self.target: Target | None = None
        self.fields = frozenset[str]()
        """Those of the view that were compared."""
        self.restart()

    def restart(self) -> None:
        """Begin another walk, on a target as fresh as a new one."""
        self.state = self.machine.initial()
        self.commands: list[Command] = []
        if self.target is not None and isinstance(self.target, Restarting):
            journal.begun(self.machine.setting)
            self.target.restart()
        else:
            self.close()
            target = started(lambda: opened(self.target_class, self.machine.setting))
            if isinstance(target, Crashed):
                self.divergence: Divergence | None = crashed(None, target)
                return
            self.target = target
        self.divergence = at_start(self.machine, self.target)

    def close(self) -> None:
        if self.target is not None:
            self.target.close()
            self.target = None

    def hurry(self, commands: Sequence[Command], state: State) -> None:
        """Perform commands that earlier walks have explained, and be in `state` then; only crashes are looked for."""
        if self.target is None or self.divergence is not None:
            return
        for command in commands:
            self.commands.append(command)
            outcome = carried_out(self.target, command)
            if isinstance(outcome, Crashed):
                self.divergence = crashed(command, outcome)
                return
        self.state = state

    def take(self, command: Command) -> bool:
        """Perform one command; False if it cannot be accounted for."""
        machine, target = self.machine, self.target
        assert target is not None
        self.commands.append(command)
        outcome, view = performed(target, command)
        explained = explain(machine, self.state, command, outcome, view, target.exact)
        if isinstance(explained, Divergence):
            self.divergence = explained
            return False
        self.fields |= compared_fields(target, view)
        self.state = explained.state
        self.divergence = differing_offers(machine, self.state, target, command)
        return self.divergence is None


def _walked(job: Job, variant: Variant, target_class: type[Target], progress: Progress, cut: Cut) -> Found:
    machine = Machine(variant.contract, variant.scope)
    if job.options.get("cover") == "pairs":
        return _pairs_walked(job, variant, machine, target_class, progress, cut)
    transitions = Transitions(machine)
    steps = walks = 0
    amounts: dict[str, int] = {}
    walker = Walker(machine, target_class)
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
                return Found(False, failure, {"states": len(transitions.states), "edges": taken}, "")
    finally:
        walker.close()
    amounts |= {"states": len(transitions.states), "edges": transitions.total, "planned_edges": transitions.total}
    amounts |= {"commands": steps}
    amounts |= {f"field:{name}": steps if name in walker.fields else 0 for name in fields_of(variant.scope)}
    return Found(True, None, amounts, f"every transition, in {walks:,} walks of {steps:,} commands; all bytes checked")


def _pairs_walked(
    job: Job, variant: Variant, machine: Machine, target_class: type[Target], progress: Progress, cut: Cut
) -> Found:
    """Walk the kept ways to every pair of action and phase; where none are kept, explore for them first.

    What is kept is held against all that there is by the product search of the same scope.
    """
    kept = ways.read(job.discipline, job.scope_name) if _is_named(job) else None
    if kept is None:
        progress(f"{variant.name}: exploring for pairs of action and phase")
        pairs = Pairs(machine, cut)
        if not pairs.finished:
            return Found(False, None, {}, f"cut short after {pairs.states:,} states, before any walk")
        kept = ways.found(machine, pairs)
    covered: set[str] = set()
    steps = 0
    walker = Walker(machine, target_class)
    try:
        for way in kept.ways:
            progress(f"{variant.name}: {len(covered):,}/{len(kept.pairs):,} pairs of action and phase")
            walker.restart()
            for command in way:
                steps += 1
                action = action_of(machine, walker.state, command)
                if action is not None:
                    covered.update(map(ways.written, pairs_of(walker.state, action)))
                if walker.divergence is not None or not walker.take(command):
                    failure = _failure_of_walk(job, variant, machine, target_class, walker)
                    return Found(False, failure, {"edges": len(covered)}, "")
            if cut():
                detail = f"cut short: {len(covered):,} of {len(kept.pairs):,} pairs of action and phase"
                return Found(False, None, {"edges": len(covered)}, detail)
    finally:
        walker.close()
    if covered != kept.pairs:
        amounts = {"edges": len(covered & kept.pairs)}
        return Found(False, None, amounts, f"{STALE}: they meet other pairs than they list")
    amounts = {"states": kept.states, "edges": len(covered), "planned_edges": len(kept.pairs), "commands": steps}
    detail = f"every pair of action and phase of {kept.states:,} states, {steps:,} commands; all bytes checked"
    return Found(True, None, amounts, detail)


STALE = "the kept ways are of another machine (write them anew: python -m kvproof.search.ways)"


def _is_named(job: Job) -> bool:
    """The job is of a named scope in its default modes, as the kept ways are."""
    return SCOPES.get(job.scope_name) == job.scope and job.contract == Contract(job.discipline)


def _failure_of_walk(
    job: Job, variant: Variant, machine: Machine, target_class: type[Target], walker: Walker
) -> Failure:
    """The failure of a walk. Walks are long: the commands are shrunk before they are shown."""
    from kvproof.engines.shrink import shrunk

    def open_target() -> Target:
        return opened(target_class, machine.setting)

    assert walker.divergence is not None
    commands, run, minimal = shrunk(machine, open_target, walker.commands, walker.divergence, lambda: False)
    divergence = run.divergence or walker.divergence
    remark = "" if run.divergence else "(It did not occur when the same commands were run again.)"
    return failure_of(variant, job.target, job.engine, job.device, commands, divergence, run.notes, minimal, remark)
