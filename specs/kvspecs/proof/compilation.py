"""The invariants as plain Python, made once from the formulas that z3 reasons about: loops that run fast enough to ask
every node of a search.

A formula is applied to expressions, which note the source text of what is asked of them. What is denied is a
conjunction; each of its parts is asked in the outermost loop that has its elements, so that most loops end early.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from kvmodel.contract import Discipline
from kvmodel.setting import Setting
from kvmodel.state import State as MachineState
from kvspecs.proof.abstraction import constants, defaults, entries_of, vocabulary
from kvspecs.proof.counting import COUNTS
from kvspecs.proof.invariant import Invariant
from kvspecs.proof.invariants import invariants_of
from kvspecs.proof.logic import Term, no
from kvspecs.proof.state import TABLES, Cardinalities, State, Vocabulary

Tables = Mapping[str, Mapping[tuple[int, ...], Any]]
Universe = Mapping[str, Sequence[int]]
Denied = Callable[[Tables, Universe, Vocabulary], Iterator[tuple[int, tuple[int, ...]]]]
"""Of the tables, all elements and the vocabulary: which invariants do not hold, by their places, and the elements for
which they do not."""


class _Connectives:
    """Formulas of expressions."""

    def conjunction(self, terms: Sequence[Term]) -> "Expression":
        return _joined("and", terms)

    def disjunction(self, terms: Sequence[Term]) -> "Expression":
        return _joined("or", terms)

    def negation(self, term: Term) -> "Expression":
        if term.connective == "not":
            found: Expression = term.parts[0]
            return found
        return Expression(f"(not {term.text})", term.elements, "not", (term,))

    def choice(self, condition: Term, then: Term, otherwise: Term) -> "Expression":
        text = f"({_text(then)} if {condition.text} else {_text(otherwise)})"
        return Expression(text, condition.elements | _elements(then) | _elements(otherwise))


@dataclass(frozen=True, eq=False)
class Expression:
    """A term as Python's source text; the elements that it speaks of; and how it is joined of which parts."""

    text: str
    elements: frozenset[str]
    connective: str = ""
    parts: tuple["Expression", ...] = ()

    connectives = _Connectives()

    def _with(self, operator: str, other: Term) -> "Expression":
        return Expression(f"({self.text} {operator} {_text(other)})", self.elements | _elements(other))

    def __eq__(self, other: Term) -> Any:
        return self._with("==", other)

    def __lt__(self, other: Term) -> "Expression":
        return self._with("<", other)

    def __le__(self, other: Term) -> "Expression":
        return self._with("<=", other)

    def __gt__(self, other: Term) -> "Expression":
        return self._with(">", other)

    def __ge__(self, other: Term) -> "Expression":
        return self._with(">=", other)

    def __add__(self, other: Term) -> "Expression":
        return self._with("+", other)

    def __radd__(self, other: Term) -> "Expression":
        return self._with("+", other)

    __hash__ = None  # type: ignore[assignment]  # equality makes a formula, so that nothing may look it up


def _text(term: Term) -> str:
    return term.text if isinstance(term, Expression) else repr(term)


def _elements(term: Term) -> frozenset[str]:
    return term.elements if isinstance(term, Expression) else frozenset()


def _joined(connective: str, terms: Sequence[Term]) -> Expression:
    parts = tuple(part for term in terms for part in (term.parts if term.connective == connective else (term,)))
    text = f"({f' {connective} '.join(part.text for part in parts)})"
    return Expression(text, frozenset().union(*(part.elements for part in parts)), connective, parts)


def _table(name: str, default: Term) -> Callable[..., Expression]:
    def entry(*terms: Term) -> Expression:
        key = "".join(f"{_text(term)}, " for term in terms)
        elements = frozenset[str]().union(*(_elements(term) for term in terms))
        return Expression(f"{name}(({key}), {default!r})" if terms else f"{name}((), {default!r})", elements)

    return entry


def _relation(name: str) -> Callable[[Term, Term], Expression]:
    def related(first: Term, second: Term) -> Expression:
        return Expression(f"w.{name}({_text(first)}, {_text(second)})", _elements(first) | _elements(second))

    return related


def state_of(w: Vocabulary) -> State:
    """The tables as functions that make expressions."""
    nothing: Any = None
    bare = State(counts=nothing, **{name: _table(name, default) for name, default in defaults(w).items()})
    numbers = itertools.count()

    def size(name: str) -> Callable[[Term], Expression]:
        count = COUNTS[name]

        def counted(block: Term) -> Expression:
            each = f"e{next(numbers)}"
            member = count.member(w, bare, Expression(each, frozenset((each,))), block)
            if isinstance(member, bool):  # of no element, as jobs on the device under fencing
                return Expression(f"({'len' if member else '0 * len'}({count.counted}))", frozenset())
            text = f"sum([1 for {each} in {count.counted} if {member.text}])"
            return Expression(text, member.elements - {each})

        return counted

    return replace(bare, counts=Cardinalities(**{name: size(name) for name in COUNTS}))


USUAL: Mapping[str, int] = {"D": 3, "H": 2, "R": 2, "W": 2, "K": 3, "J": 2, "S": 2}
"""About how many elements there are, for choosing the order of loops."""

PASSES = 0.3
"""About how often a part of what is denied holds."""


def _order(names: Mapping[str, str], parts: Sequence[Expression]) -> tuple[str, ...]:
    """The order of loops in which least is asked."""

    def cost(order: tuple[str, ...]) -> float:
        total, rounds, bound = 0.0, 1.0, set[str]()
        for name in order:
            fresh = [part for part in parts if name in part.elements and part.elements <= bound | {name}]
            rounds *= USUAL[names[name]]
            total += rounds * (1 + len(fresh))
            rounds *= PASSES ** len(fresh)
            bound.add(name)
        return total

    return min(itertools.permutations(names), key=cost)


def source(w: Vocabulary, invariants: Sequence[Invariant], state: State) -> str:
    """A function `denied` that yields the place of each invariant that does not hold, and elements for which it does
    not. One function for all of them: a table is then looked up once, and not by each.

    state  the tables, as functions that make expressions (`state_of`)
    """
    body: list[str] = []
    for place, invariant in enumerate(invariants):
        body += _loops(w, place, invariant, state)
    text = "\n".join(body)
    lines = ["def denied(tables, universe, w):"]
    lines += [f"    {name} = tables[{name!r}].get" for name in TABLES if f"{name}((" in text]
    lines += [f"    {sort} = universe[{sort!r}]" for sort in USUAL]
    return "\n".join((*lines, text))


def _loops(w: Vocabulary, place: int, invariant: Invariant, state: State) -> Iterator[str]:
    """The lines that ask one invariant."""
    names = {f"{sort.lower()}{index}": sort for index, sort in enumerate(invariant.sorts)}
    formula = invariant.formula(w, state, *(Expression(name, frozenset((name,))) for name in names))
    parts = _denied(formula)
    depth, bound = 1, set[str]()
    for name in ("", *_order(names, parts)):
        if name:
            yield f"{'    ' * depth}for {name} in {names[name]}:"
            depth += 1
            bound.add(name)
        for part in parts:
            if part.elements <= bound and (not name or name in part.elements):
                yield f"{'    ' * depth}if {part.text}:"
                depth += 1
    yield f"{'    ' * depth}yield {place}, ({''.join(f'{name}, ' for name in names)})"


def _denied(formula: Term) -> tuple[Expression, ...]:
    """The parts of the formula's negation, all of which hold where it does not."""
    if isinstance(formula, bool):
        return (Expression(repr(not formula), frozenset()),)
    if formula.connective == "or":
        return tuple(part for one in formula.parts for part in _denied(one))
    negated: Expression = no(formula)
    return negated.parts if negated.connective == "and" else (negated,)


@cache
def compiled(discipline: Discipline) -> tuple[tuple[Invariant, ...], Denied]:
    """Every invariant of a discipline, and the function that is made from them."""
    marks, deep = Expression("w.marks", frozenset()), Expression("w.deep", frozenset())
    w = constants(discipline, marks, deep, _relation("below"), _relation("in_prompt"))
    invariants, scope = tuple(invariants_of(discipline)), dict[str, Any]()
    text = source(w, invariants, state_of(w))
    exec(compile(text, f"<invariants of {discipline}>", "exec"), scope)  # our own text
    denied: Denied = scope["denied"]
    return invariants, denied


class Broken(NamedTuple):
    """An invariant that does not hold, and the elements for which it does not."""

    invariant: Invariant
    elements: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.invariant.name}({', '.join(map(str, self.elements))})"


class Compiled:
    """Every invariant of one setting, asked of states of the machine."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.w = vocabulary(setting)
        self.invariants, self._denied = compiled(setting.contract.discipline)
        """Those that are asked; and the function that asks them."""

    def broken(self, state: MachineState) -> Iterator[Broken]:
        """The invariants that do not hold, each with the elements for which it does not."""
        tables, universe = entries_of(self.setting, state)
        for place, elements in self._denied(tables, universe, self.w):
            yield Broken(self.invariants[place], elements)
