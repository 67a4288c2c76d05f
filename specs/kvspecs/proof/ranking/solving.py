"""The lemmas, proved for every size, in the way of `kvspecs.proof.parametric`: no quantifiers, instances on terms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import z3

from kvmodel.contract import Discipline
from kvspecs.proof.action import Action, Clause, Effect, Parameters
from kvspecs.proof.actions import actions_of
from kvspecs.proof.instances import ELEMENTS, SORTS, SYMBOLS, Assumption, Pool, Template
from kvspecs.proof.logic import Term
from kvspecs.proof.obligations import Obligation
from kvspecs.proof.parametric import invariants_before
from kvspecs.proof.proof import EVERYTHING, Selection
from kvspecs.proof.questions import ASKING_Z3, Ask, Goal, Outcome, Provable, Questions
from kvspecs.proof.ranking import possible, progress
from kvspecs.proof.ranking.choices import BY_NAME, Choice
from kvspecs.proof.ranking.lemma import Lemma, Situation
from kvspecs.proof.state import State, Vocabulary

LEMMAS = (*possible.LEMMAS, *progress.LEMMAS)

RELIED_ON = frozenset(
    (
        "issued",
        "progress",
        "somebody-owes",
        "work-is-in-table",
        "views",
        "pairs-from-device",
        "marks-are-issued",
        "stream-order",
        "queued-is-youngest",
        "awaited-is-last",
        "awaited-job",
        "load-is-awaited",
        "launched-before-now",
        "steps-in-order",
        "copies-in-order",
        "copy-after-copy",
        "copy-after-step",
        "step-after-copy",
    )
)
"""The invariants that the lemmas need. They are proved by induction; here they are assumed."""

ONE_STATE = "one state"
"""Stands where an action's name stands, for lemmas that are about no action."""

Alter = Callable[[Vocabulary, State, Parameters, Effect], Effect]

LINKS: tuple[tuple[str, str, Callable[..., Term]], ...] = (
    ("J", "W", lambda s, j: s.owes(j)),
    ("J", "S", lambda s, j: s.waits_for_step(j)),
)


class Proof(Provable):
    """One lemma, of one action or of one state. `alter` changes the action's effect: a bug, seeded on purpose."""

    def __init__(self, discipline: Discipline, lemma: Lemma, action: Action | None, alter: Alter | None = None) -> None:
        self.lemma = lemma
        self.action = action
        w, before = SYMBOLS.vocabulary(discipline), SYMBOLS.state()
        self.choices = tuple(BY_NAME[name] for name in lemma.uses)
        functions = {c.name: SYMBOLS.symbol(f"choose {c.name}", c.arguments, c.value) for c in self.choices}
        self.situation = Situation(w, before, functions)
        self.values: Mapping[str, Any] = {}
        self.guard: tuple[Clause, ...] = ()
        if action is not None:
            self.values = SYMBOLS.parameters(action)
            p = Parameters(self.values)
            effect = action.effect(w, before, p)
            effect = effect if alter is None else alter(w, before, p, effect)
            after = replace(effect.after, counts=SYMBOLS.cardinalities("after"))
            self.guard = effect.guard
            self.situation = Situation(w, before, functions, p, after)
        self.subject = _named(lemma.sorts, "")
        relied_on = (template for name, template in invariants_before(discipline).items() if name in RELIED_ON)
        self._assumed = (*relied_on, *map(Template, self._assumptions()))

    @property
    def before(self) -> State:
        return self.situation.before

    @property
    def after(self) -> State:
        """The state after the action; of a lemma about one state, that one."""
        return self.situation.after or self.situation.before

    @property
    def w(self) -> Vocabulary:
        return self.situation.w

    def named(self, obligation: Obligation) -> list[Term]:
        """The elements for which a clause is denied."""
        return _named(obligation.sorts, "at ")

    def looked_at(self, obligation: Obligation) -> Mapping[str, Sequence[Term]]:
        """The elements that the proof of a clause looks at, by sort."""
        return self._pool(obligation.sorts, self.named(obligation)).terms

    def _assumptions(self) -> Iterator[Assumption]:
        for clause in (*self.guard, *self.lemma.given(self.situation, *self.subject)):
            yield Assumption(clause.name, clause.sorts, clause.formula)
        for choice in self.choices:
            yield Assumption(choice.name, choice.arguments + choice.value, partial(self._chosen, choice))

    def _chosen(self, choice: Choice, *terms: Term) -> Term:
        chosen = self.situation.choose(choice.name, *terms[:-1])
        return choice.fact(self.situation.w, self.situation.before, chosen, *terms)

    def _pool(self, sorts: str, names: Sequence[Term]) -> Pool:
        s = self.situation.before
        base = Pool()
        for sort, name in (*zip(self.lemma.sorts, self.subject, strict=True), *zip(sorts, names, strict=True)):
            if sort in ELEMENTS:
                base.add(sort, name)
        if self.action is not None:
            for name, signature in self.action.parameters.items():
                if signature in ELEMENTS:
                    base.add(signature, self.values[name])
        base.add("S", s.awaited())
        base.add("S", s.ahead())
        base.extend([(a, v, partial(f, s)) for a, v, f in LINKS], _copy(base))
        base.extend([(a, v, partial(f, self.situation)) for a, v, f in self.lemma.terms], _copy(base))
        of_keys = [c for c in self.choices if "W" not in c.arguments]
        base.extend([(c.arguments, c.value, partial(self.situation.choose, c.name)) for c in of_keys], _copy(base))
        for sort, term in self.lemma.looks_at(self.situation, *self.subject):
            base.add(sort, term)
        return base

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """What is to be shown: each is an obligation."""
        return self.lemma.shown(self.situation, *self.subject)

    @property
    def obligations(self) -> Iterator[Obligation]:
        """The clauses, as obligations."""
        about = self.action.name if self.action is not None else ONE_STATE
        for clause in self.clauses:
            name = self.lemma.name if clause.name == self.lemma.name else f"{self.lemma.name}, {clause.name}"
            yield Obligation(about, name, self.lemma.theorem.name, clause.sorts, clause.formula)

    def questions(self, wanted: Callable[[Obligation], bool]) -> Iterator[Questions]:
        groups: dict[str, list[Obligation]] = {}
        for obligation in filter(wanted, self.obligations):
            groups.setdefault(obligation.sorts, []).append(obligation)
        for sorts, group in groups.items():
            goals = [Goal(obligation, obligation.formula(*self.named(obligation))) for obligation in group]
            yield Questions(self._assumed, self._pool(sorts, self.named(group[0])), goals)

    def is_satisfiable(self) -> bool:
        """Whether what is assumed can be: a lemma of nothing would be proved of everything."""
        solver = z3.SimpleSolver()
        Questions(self._assumed, self._pool("", ()), ()).assume(solver)
        return str(solver.check()) == "sat"


def _named(sorts: str, label: str) -> list[Term]:
    """Names for the elements for which it is denied."""
    return [z3.Const(f"{label}{sort.lower()}{index}", SORTS[sort]) for index, sort in enumerate(sorts)]


def _copy(pool: Pool) -> Pool:
    copy = Pool()
    copy.include(pool)
    return copy


def proofs(discipline: Discipline, selection: Selection = EVERYTHING) -> Iterator[Proof]:
    """Every selected lemma: of one state, or of each action that it is about."""
    for lemma in LEMMAS:
        if selection.property not in ("", lemma.theorem.name):
            continue
        if not lemma.actions and not selection.actions:
            yield Proof(discipline, lemma, None)
        for action in actions_of(discipline):
            if lemma.concerns(action) and selection.takes(action.name):
                yield Proof(discipline, lemma, action)


def prove(
    discipline: Discipline,
    selection: Selection = EVERYTHING,
    ask: Ask = ASKING_Z3,
    stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[Proof, Outcome]]:
    """Every selected lemma (`property`: a theorem), with what became of each of its clauses. Ends early when `stop`
    says so."""
    for proof in proofs(discipline, selection):
        if stop():
            return
        say(proof.lemma.theorem.name)
        for outcome in proof.prove(ask=ask):
            yield proof, outcome
