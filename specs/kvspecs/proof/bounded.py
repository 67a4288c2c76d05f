"""Bounded model checking: paths from the initial state, where every sort has a few elements.

What induction refutes may be a state that nothing reaches. Here every state is reached: a path is found action by
action, and the solver chooses the actions, or only their parameters.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import z3

from kvmodel.contract import Discipline
from kvspecs.proof.action import Action, Effect, Parameters
from kvspecs.proof.actions import actions_of
from kvspecs.proof.finite import TIMEOUT_MS, counted, sizes_of
from kvspecs.proof.initial import initial
from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, any_of, implies, no
from kvspecs.proof.state import TABLES, State, Vocabulary
from kvspecs.proof.symbols import of_sizes

SIZES: Mapping[str, int] = {"D": 2, "H": 1, "R": 2, "W": 1, "K": 2, "J": 2, "S": 2}

Goal = Callable[["Bounded", State], Term]
Alter = Callable[[Vocabulary, State, Parameters, Effect], Effect]


class Path(NamedTuple):
    """What was found: the actions of a path, and the solver's model with the states that it goes through."""

    actions: tuple[str, ...]
    states: tuple[State, ...]
    model: Any


class Undecided(RuntimeError):
    """The solver has given up."""


class Bounded:
    """The paths of one discipline. `alter` changes the effect of the action of that name: a bug, on purpose."""

    def __init__(
        self,
        discipline: Discipline,
        sizes: Mapping[str, int] = SIZES,
        alter: Mapping[str, Alter] | None = None,
    ) -> None:
        self.symbols, self.elements = of_sizes(tuple(sorted(sizes.items())))
        self.w = self.symbols.vocabulary(discipline)
        self.actions = actions_of(discipline)
        self._alter = alter or {}
        self._sizes = sizes
        self._states = [self._first()]
        self._steps: dict[tuple[str, int], list[Term]] = {}

    def tuples(self, sorts: str) -> Iterator[tuple[Term, ...]]:
        return itertools.product(*(self.elements[sort] for sort in sorts))

    def some(self, sorts: str, formula: Callable[..., Term]) -> Term:
        """It holds of some elements."""
        return any_of(*(formula(*terms) for terms in self.tuples(sorts)))

    def breaks(self, invariant: Invariant) -> Goal:
        """A goal: the invariant does not hold."""
        return lambda bounded, s: self.some(invariant.sorts, lambda *terms: no(invariant.formula(self.w, s, *terms)))

    def along(self, names: Sequence[str], goal: Goal) -> Path | None:
        """A path of these actions to a goal; None: there is none. Raises Undecided."""
        by_name = {action.name: action for action in self.actions}
        solver = self._solver()
        for number, name in enumerate(names):
            solver.add(*self._step(by_name[name], number))
        return self._found(solver, len(names), goal, lambda model: tuple(names))

    def within(self, steps: int, goal: Goal) -> Path | None:
        """A shortest path of at most so many actions to a goal; None: there is none. Raises Undecided."""
        solver = self._solver()
        chosen: list[Term] = []

        def told(model: Any) -> tuple[str, ...]:
            return tuple(self.actions[model.eval(which).as_long()].name for which in chosen)

        for number in range(steps + 1):
            found = self._found(solver, number, goal, told)
            if found is not None or number == steps:
                return found
            which = z3.Int(f"action_{number}")
            chosen.append(which)
            solver.add(which >= 0, which < len(self.actions))
            for index, action in enumerate(self.actions):
                for formula in self._step(action, number):
                    solver.add(implies(which == index, formula))
        return None

    def _found(self, solver: Any, length: int, goal: Goal, told: Callable[[Any], tuple[str, ...]]) -> Path | None:
        states = [self._state(number) for number in range(length + 1)]
        solver.push()
        solver.add(goal(self, states[-1]))
        answer = str(solver.check())
        if answer == "unknown":
            raise Undecided(f"the solver has given up after {TIMEOUT_MS / 1000:.0f} s")
        found = Path(told(solver.model()), tuple(states), solver.model()) if answer == "sat" else None
        solver.pop()
        return found

    def _solver(self) -> Any:
        solver = z3.Solver()
        solver.set("timeout", TIMEOUT_MS)
        numbers = range(len(self.elements["K"]))
        for (m, first), (n, second) in itertools.product(zip(numbers, self.elements["K"], strict=True), repeat=2):
            solver.add(self.w.below(first, second) == (0 < m < n))
        for request, (n, key) in itertools.product(self.elements["R"], enumerate(self.elements["K"])):
            solver.add(self.w.in_prompt(request, key) == (n > 0))
        return solver

    def _first(self) -> State:
        otherwise = {sort: self.elements[sort][0] for sort in "DHRW"}
        bare = initial(self.w, self.symbols.cardinalities("unused"), otherwise)
        return replace(bare, counts=counted(self.w, bare, self.elements))

    def _state(self, number: int) -> State:
        while len(self._states) <= number:
            bare = self.symbols.state(f"_{len(self._states)}")
            self._states.append(replace(bare, counts=counted(self.w, bare, self.elements)))
        return self._states[number]

    def _step(self, action: Action, number: int) -> list[Term]:
        """The action is taken. Paths begin alike: what was made for another one is not made again."""
        made = self._steps.get((action.name, number))
        if made is None:
            taken = self._taken(action, number, self._state(number), self._state(number + 1))
            made = self._steps[action.name, number] = list(taken)
        return made

    def _taken(self, action: Action, number: int, before: State, after: State) -> Iterator[Term]:
        """Its guard holds, and every entry of every table is what it makes of it."""
        values = self.symbols.parameters(action, f"_{number}_{action.name}")
        p = Parameters(values)
        effect = action.effect(self.w, before, p)
        if action.name in self._alter:
            effect = self._alter[action.name](self.w, before, p, effect)
        for clause in effect.guard:
            yield from (clause.formula(*terms) for terms in self.tuples(clause.sorts))
        for name, (arguments, _) in TABLES.items():
            for terms in self.tuples(arguments):
                yield getattr(after, name)(*terms) == getattr(effect.after, name)(*terms)
        yield from sizes_of(effect, self.elements)
        yield from self._within(action, values, effect.after)

    def _within(self, action: Action, values: Mapping[str, Any], after: State) -> Iterator[Term]:
        """All ids are among those that there are."""
        yield after.next_job() <= self._sizes["J"]
        for name, signature in action.parameters.items():
            arguments, arrow, value = signature.partition(">")
            sort = value if arrow else signature
            if sort not in "JS" or name == "until":
                continue
            least, most = (0, self._sizes["J"]) if sort == "J" else (-1, self._sizes["S"])
            for terms in self.tuples(arguments) if arrow else ((),):
                term = values[name](*terms) if arrow else values[name]
                yield all_of(term >= least, term < most)
