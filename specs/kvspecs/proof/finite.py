"""Finite scope: the same obligations where every sort has a few elements, and every quantifier is written out.

Nothing is left to a choice of terms here: an obligation that fails parametrically and holds here lacks a term; one that
fails here too is a counterexample to induction. And what is satisfiable here is not vacuous: each action can happen.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import z3

from kvmodel.contract import Discipline
from kvspecs.proof.action import Action, Effect, Parameters
from kvspecs.proof.actions import actions_of
from kvspecs.proof.counting import COUNTS
from kvspecs.proof.invariants import invariants_of
from kvspecs.proof.logic import Term, one
from kvspecs.proof.obligations import Obligation, obligations_of
from kvspecs.proof.state import TABLES, Cardinalities, State, Vocabulary
from kvspecs.proof.symbols import of_sizes

SIZES: Mapping[str, int] = {"D": 2, "H": 2, "R": 2, "W": 2, "K": 3, "J": 3, "S": 2}

TIMEOUT_MS = 60_000

Alter = Callable[[Vocabulary, State, Parameters, Effect], Effect]


class Outcome(NamedTuple):
    """What became of one obligation: `proved`, `counterexample` or `unknown`; the solver's seconds; and the model."""

    obligation: Obligation
    verdict: str
    seconds: float
    model: Any = None


def counted(w: Vocabulary, s: State, elements: Mapping[str, Sequence[Term]]) -> Cardinalities:
    """The cardinalities as sums over all elements."""

    def size(name: str) -> Callable[[Term], Term]:
        count = COUNTS[name]
        return lambda block: sum(one(count.member(w, s, x, block)) for x in elements[count.counted])

    return Cardinalities(**{name: size(name) for name in COUNTS})


def sizes_of(effect: Effect, elements: Mapping[str, Sequence[Term]]) -> Iterator[Term]:
    """That the sets which the action chooses have the sizes that it says."""
    for chosen in effect.chosen.values():
        for block in elements[chosen.of]:
            yield chosen.size(block) == sum(one(chosen.member(x, block)) for x in elements[chosen.counted])


class _Supposed(NamedTuple):
    """A state of which no more is known than that every invariant holds there, each written out for all elements."""

    state: State
    holds: tuple[Term, ...]


@cache
def _supposed(discipline: Discipline, sizes: tuple[tuple[str, int], ...]) -> _Supposed:
    """Made once for all actions: to make these formulas takes longer than to solve them."""
    symbols, elements = of_sizes(sizes)
    w, bare = symbols.vocabulary(discipline), symbols.state()
    state = replace(bare, counts=counted(w, bare, elements))
    holds = [
        invariant.formula(w, state, *terms)
        for invariant in invariants_of(discipline)
        for terms in itertools.product(*(elements[sort] for sort in invariant.sorts))
    ]
    return _Supposed(state, tuple(holds))


class FiniteInduction:
    """The obligations of one action where sorts have these sizes. `alter` changes its effect: a bug, on purpose."""

    def __init__(
        self, discipline: Discipline, action: Action, alter: Alter | None = None, sizes: Mapping[str, int] = SIZES
    ) -> None:
        by_sort = tuple(sorted(sizes.items()))
        symbols, self.elements = of_sizes(by_sort)
        self.w = symbols.vocabulary(discipline)
        self.action = action
        self.before, self._invariants_before = _supposed(discipline, by_sort)
        self.values = symbols.parameters(action)
        p = Parameters(self.values)
        effect = action.effect(self.w, self.before, p)
        self.effect = effect if alter is None else alter(self.w, self.before, p, effect)
        self.after = replace(self.effect.after, counts=counted(self.w, self.effect.after, self.elements))
        self.invariants = invariants_of(discipline)
        self.obligations = obligations_of(self.w, action, p, self.before, self.effect, self.after, self.invariants)
        self._jobs = sizes["J"]
        self._steps = sizes["S"]

    def tuples(self, sorts: str) -> Iterator[tuple[Term, ...]]:
        return itertools.product(*(self.elements[sort] for sort in sorts))

    def hypotheses(self) -> list[Term]:
        """The invariants before, the guard, and that all ids are among those that there are."""
        guard = [clause.formula(*terms) for clause in self.effect.guard for terms in self.tuples(clause.sorts)]
        return [*self._invariants_before, *guard, *sizes_of(self.effect, self.elements), *self._within()]

    def _within(self) -> Iterator[Term]:
        for name, (arguments, value) in TABLES.items():
            for terms in self.tuples(arguments) if value in "JS" and arguments else ():
                yield self._is_id(value, getattr(self.before, name)(*terms))
        yield self._is_id("S", self.before.awaited())
        yield self._is_id("S", self.before.ahead())
        yield self.after.next_job() <= self._jobs
        for name, signature in self.action.parameters.items():
            arguments, arrow, value = signature.partition(">")
            if not arrow and signature in "JS" and name != "until":  # which is an id that is not given out
                yield self._is_id(signature, self.values[name])
            elif arrow and value in "JS":
                for terms in self.tuples(arguments):
                    yield self._is_id(value, self.values[name](*terms))

    def _is_id(self, sort: str, term: Term) -> Term:
        least, most = (0, self._jobs - 1) if sort == "J" else (-1, self._steps - 1)
        return z3.And(term >= least, term <= most)

    def solver(self, seed: int = 0) -> Any:
        solver = z3.Solver()
        solver.set("random_seed", seed)
        solver.set("timeout", TIMEOUT_MS)
        solver.add(self.hypotheses())
        return solver

    def fails(self, obligation: Obligation) -> Term:
        """The obligation does not hold for some elements."""
        denied = [_negated(obligation.formula(*terms)) for terms in self.tuples(obligation.sorts)]
        return z3.Or(denied)

    def prove(self, wanted: Callable[[Obligation], bool] = lambda o: True, seed: int = 0) -> Iterator[Outcome]:
        """Every wanted obligation, with what became of it."""
        solver = self.solver(seed)
        for obligation in self.obligations:
            if not wanted(obligation):
                continue
            started = time.monotonic()
            solver.push()
            solver.add(self.fails(obligation))
            answer = str(solver.check())
            model = solver.model() if answer == "sat" else None
            solver.pop()
            verdict = {"unsat": "proved", "sat": "counterexample"}.get(answer, "unknown")
            yield Outcome(obligation, verdict, time.monotonic() - started, model)

    def can_happen(self, seed: int = 0, also: Sequence[Term] = ()) -> Any:
        """A model of a state in which the action can happen and the invariants hold, or None."""
        solver = self.solver(seed)
        solver.add(*also)
        return solver.model() if str(solver.check()) == "sat" else None


def _negated(formula: Term) -> Term:
    return (not formula) if isinstance(formula, bool) else z3.Not(formula)


def judged(discipline: Discipline, action: str, obligation: str) -> Iterator[Outcome]:
    """One obligation of an action, by their names."""
    induction = FiniteInduction(discipline, next(a for a in actions_of(discipline) if a.name == action))
    yield from induction.prove(lambda o: o.name == obligation)
