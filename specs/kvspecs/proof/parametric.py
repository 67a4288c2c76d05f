"""Parametric induction: every obligation for pools, requests, jobs and workers of any number, without quantifiers.

An obligation says: if the invariants hold before an action, they hold after it. Its negation is satisfied by some
elements, which get names; what is assumed of all elements is instantiated on these, on the action's parameters, and on
a few functions of them. What cannot be satisfied then is proved. What can be is a counterexample to induction, or a
term is missing; finite-scope induction (`finite`) tells which.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import z3

from kvmodel.contract import Discipline
from kvspecs.proof.action import Action, Effect, Parameters
from kvspecs.proof.counting import COUNTS, Chosen, Count, Union, fact_member, fact_union, fact_witness
from kvspecs.proof.invariants import invariants_of
from kvspecs.proof.logic import Term
from kvspecs.proof.obligations import Obligation, obligations_of
from kvspecs.proof.state import State, Vocabulary
from kvspecs.proof.symbols import of_any_size

ELEMENTS = "DHRWKJS"

SYMBOLS = of_any_size()
SORTS = SYMBOLS.sorts

TIMEOUT_MS = 20_000


class Assumption(NamedTuple):
    """A formula that holds of all elements of `sorts`, to be instantiated."""

    name: str
    sorts: str
    formula: Callable[..., Term]


def _facts(w: Vocabulary, before: State, after: State, effect: Effect) -> Iterator[Assumption]:
    """What is true of the sizes of finite sets, before and after."""
    at = {"before": before, "after": after}
    for name, count in COUNTS.items():
        for when, state in at.items():
            yield _witness(w, state, name, count, when)
            yield _member(w, state, name, count)
    for name, chosen in effect.chosen.items():
        yield from _of_chosen(name, chosen)
    for union in unions_of(effect):
        yield _union(w, at, union, effect)


def _member_of(w: Vocabulary, state: State, count: Count, block: Term) -> Callable[[Term], Term]:
    return lambda x: count.member(w, state, x, block)


def _witness(w: Vocabulary, state: State, name: str, count: Count, when: str) -> Assumption:
    witness = z3.Function(f"some_{name}_{when}", SORTS[count.of], SORTS[count.counted])
    size = getattr(state.counts, name)
    return Assumption(
        f"some-{name}",
        count.of,
        lambda b: fact_witness(witness(b), _member_of(w, state, count, b), size(b)),
    )


def _member(w: Vocabulary, state: State, name: str, count: Count) -> Assumption:
    size = getattr(state.counts, name)
    return Assumption(
        f"at-least-one-{name}",
        count.of + count.counted,
        lambda b, x: fact_member(x, _member_of(w, state, count, b), size(b)),
    )


def _of_chosen(name: str, chosen: Chosen) -> Iterator[Assumption]:
    """The same of a set that the action chooses."""
    counted, of, member, size = chosen
    witness = z3.Function(f"some_{name}_chosen", SORTS[of], SORTS[counted])
    yield Assumption(f"some-{name}", of, lambda b: fact_witness(witness(b), lambda x: member(x, b), size(b)))
    yield Assumption(f"at-least-one-{name}", of + counted, lambda b, x: fact_member(x, lambda y: member(y, b), size(b)))


def _doubtful(union: Union, count: Count) -> Any:
    """For a block, an element for which the premise of a union fails, if there is one."""
    label = "_".join((*union.whole, *(word for part in union.parts for word in part)))
    return z3.Function(f"doubtful_{label}", SORTS[count.of], SORTS[count.counted])


def unions_of(effect: Effect) -> tuple[Union, ...]:
    """Each set after the action beside the same one before it; and what the action says of its own."""
    same = (Union(("after", name), (("before", name),)) for name in COUNTS)
    return (*same, *effect.unions)


def _union(w: Vocabulary, at: Mapping[str, State], union: Union, effect: Effect) -> Assumption:
    whole, parts = union
    count = COUNTS[whole[1]]
    doubtful = _doubtful(union, count)
    changed = effect.changed.get((count.counted, count.of))

    def part(when: str, name: str, b: Term) -> tuple[Callable[[Term], Term], Term]:
        """Who is a member, and how many are."""
        if when == "chosen":
            chosen = effect.chosen[name]
            return lambda x: chosen.member(x, b), chosen.size(b)
        return _member_of(w, at[when], COUNTS[name], b), getattr(at[when].counts, name)(b)

    def formula(b: Term) -> Term:
        members, sizes = zip(*(part(when, name, b) for when, name in parts), strict=True)
        all_members, size = part(*whole, b)
        return fact_union(doubtful(b), all_members, members, size, sizes, None if changed is None else changed(b))

    return Assumption(f"union-{whole[1]}", count.of, formula)


class Pool:
    """The terms on which assumptions are instantiated, by sort."""

    def __init__(self) -> None:
        self.terms: dict[str, list[Term]] = {sort: [] for sort in ELEMENTS}
        self._known: dict[str, set[int]] = {sort: set() for sort in ELEMENTS}

    def add(self, sort: str, term: Term) -> None:
        term = z3.IntVal(term) if isinstance(term, int) else term
        if term.get_id() not in self._known[sort]:
            self._known[sort].add(term.get_id())
            self.terms[sort].append(term)

    def tuples(self, sorts: str) -> Iterator[tuple[Term, ...]]:
        return itertools.product(*(self.terms[sort] for sort in sorts))

    def handles(self, sorts: str) -> Iterator[tuple[Any, ...]]:
        """The same tuples, as z3's C interface knows them."""
        return itertools.product(*([term.ast for term in self.terms[sort]] for sort in sorts))

    def include(self, other: "Pool") -> None:
        for sort, terms in other.terms.items():
            for term in terms:
                self.add(sort, term)

    def extend(self, functions: Sequence[tuple[str, str, Any]], named: "Pool") -> None:
        """Add what (arguments, sort of value, function) yield on the terms of another pool."""
        for arguments, value, function in functions:
            for terms in named.tuples(arguments):
                self.add(value, function(*terms))


class Template:
    """An assumption as one formula with variables, into which terms are put.

    Through z3's C interface: there are hundreds of thousands of instances, and the Python objects for them cost more
    than z3.
    """

    def __init__(self, assumption: Assumption) -> None:
        self.sorts = assumption.sorts
        self.formula = assumption.formula(*(z3.Var(i, SORTS[sort]) for i, sort in enumerate(assumption.sorts)))

    def assert_on(self, solver: Any, pool: Pool) -> int:
        """Assert it on all terms of the pool. How many instances that are."""
        if isinstance(self.formula, bool):
            if not self.formula:
                solver.add(self.formula)
            return 0
        if not self.sorts:
            solver.add(self.formula)
            return 0
        context, count, instances = solver.ctx.ref(), len(self.sorts), 0
        array, formula = z3.Ast * count, self.formula.as_ast()
        for handles in pool.handles(self.sorts):
            instance = z3.Z3_substitute_vars(context, formula, count, array(*handles))
            z3.Z3_solver_assert(context, solver.solver, instance)
            instances += 1
        return instances


Link = tuple[str, str, Callable[..., Term]]
"""Sorts of the arguments, sort of the value, and a function of the state before and these arguments."""

LINKS: tuple[Link, ...] = (
    ("JH", "D", lambda s, j, h: s.device_of(j, h)),
    ("JD", "H", lambda s, j, d: s.host_of(j, d)),
    ("J", "R", lambda s, j: s.request(j)),
    ("RK", "D", lambda s, r, k: s.found_device(r, k)),
    ("RK", "H", lambda s, r, k: s.found_host(r, k)),
    ("SD", "R", lambda s, g, d: s.writer(g, d)),
    ("D", "S", lambda s, d: s.wrote(d)),
    ("JD", "S", lambda s, j, d: s.stored_from(j, d)),
)
"""Functions whose values at the named elements are terms too."""

STEP_LINKS: tuple[Link, ...] = (
    ("SD", "S", lambda s, g, d: s.read_from(g, d)),
    ("JH", "S", lambda s, j, h: s.wrote(s.device_of(j, h))),
    ("JH", "S", lambda s, j, h: s.stored_from(j, s.device_of(j, h))),
)
"""The same, for obligations about steps or about what happens on a worker."""

LAGGARDS: tuple[Link, ...] = (("S", "W", lambda s, g: s.laggard(g)),)
"""The same, for obligations about steps that speak of no worker."""


class Outcome(NamedTuple):
    """What became of one obligation: `proved`, `counterexample` or `unknown`; the solver's seconds; and the model."""

    obligation: Obligation
    verdict: str
    seconds: float
    instances: int = 0
    model: Any = None


class Induction:
    """The obligations of one action in one discipline. `alter` changes its effect: a bug, seeded on purpose."""

    def __init__(
        self,
        discipline: Discipline,
        action: Action,
        alter: Callable[[Vocabulary, State, Parameters, Effect], Effect] | None = None,
    ) -> None:
        self.w = SYMBOLS.vocabulary(discipline)
        self.action = action
        self.before = SYMBOLS.state()
        self.values = SYMBOLS.parameters(action)
        p = Parameters(self.values)
        effect = action.effect(self.w, self.before, p)
        self.effect = effect if alter is None else alter(self.w, self.before, p, effect)
        self.after = replace(self.effect.after, counts=SYMBOLS.cardinalities("after"))
        self.invariants = invariants_of(discipline)
        self.obligations = obligations_of(self.w, action, p, self.before, self.effect, self.after, self.invariants)
        self.assumptions = tuple(self._assumed())
        self._templates: dict[int, Template] = {}

    def _assumed(self) -> Iterator[Assumption]:
        for invariant in self.invariants:
            yield Assumption(invariant.name, invariant.sorts, self._before(invariant.formula))
        for clause in self.effect.guard:
            yield Assumption(f"guard {clause.name}", clause.sorts, clause.formula)
        yield from _facts(self.w, self.before, self.after, self.effect)

    def _before(self, formula: Callable[..., Term]) -> Callable[..., Term]:
        return lambda *elements: formula(self.w, self.before, *elements)

    def named(self, obligation: Obligation) -> list[Term]:
        """The elements for which the obligation is denied."""
        seen: dict[str, int] = {}
        names: list[Term] = []
        for sort in obligation.sorts:
            names.append(z3.Const(f"{sort.lower()}{seen.get(sort, 0)}", SORTS[sort]))
            seen[sort] = seen.get(sort, 0) + 1
        return names

    @property
    def none(self) -> Term:
        return self.w.none

    def looked_at(self, obligation: Obligation) -> Mapping[str, Sequence[Term]]:
        """The elements that the proof of an obligation looks at, by sort."""
        return self.pool(obligation.sorts, self.named(obligation)).terms

    def pool(self, sorts: str, names: Sequence[Term]) -> Pool:
        """The named elements, the parameters, and functions of both."""
        base = Pool()
        for sort, name in zip(sorts, names, strict=True):
            base.add(sort, name)
        functions: list[tuple[str, str, Callable[..., Term]]] = []
        for name, signature in self.action.parameters.items():
            arguments, arrow, value = signature.partition(">")
            if arrow and value in ELEMENTS:
                functions.append((arguments, value, self.values[name]))
            elif not arrow and signature in ELEMENTS:
                base.add(signature, self.values[name])
        if self.after.next_job is not self.before.next_job:
            base.add("J", self.before.next_job())
        base.add("S", self.before.awaited())
        pool = Pool()
        pool.include(base)
        links = LINKS
        if "S" in sorts or "W" in sorts:
            links += STEP_LINKS
        if "S" in sorts and "W" not in sorts:
            links += LAGGARDS
        pool.extend([(a, v, partial(f, self.before)) for a, v, f in links], base)
        pool.extend(functions, base)
        p = Parameters(self.values)
        pool.extend([(a, v, partial(f, self.before, p)) for a, v, f in self.action.terms], base)
        if sorts in ("D", "H"):  # about a block alone: its references are counted
            for union in unions_of(self.effect):
                count = COUNTS[union.whole[1]]
                if count.of == sorts:
                    pool.add(count.counted, _doubtful(union, count)(names[0]))
        return pool

    def assume(self, solver: Any, pool: Pool) -> int:
        """Assert all assumptions on all terms of the pool. How many instances that are."""
        return sum(self._template(index).assert_on(solver, pool) for index in range(len(self.assumptions)))

    def _template(self, index: int) -> "Template":
        if index not in self._templates:
            self._templates[index] = Template(self.assumptions[index])
        return self._templates[index]

    def is_unchanged(self, obligation: Obligation) -> bool:
        """The action does not touch what the invariant speaks of."""
        if obligation.unchanged is None:
            return False
        names = self.named(obligation)
        after, before = obligation.formula(*names), obligation.unchanged(*names)
        if isinstance(after, bool):
            return after
        return not isinstance(before, bool) and bool(z3.simplify(after).eq(z3.simplify(before)))

    def prove(self, wanted: Callable[[Obligation], bool] = lambda o: True, seed: int = 0) -> Iterator[Outcome]:
        """Every wanted obligation, with what became of it."""
        groups: dict[str, list[Obligation]] = {}
        for obligation in self.obligations:
            if wanted(obligation):
                if self.is_unchanged(obligation):
                    yield Outcome(obligation, "proved", 0.0)
                else:
                    groups.setdefault("".join(sorted(obligation.sorts)), []).append(obligation)
        for group in groups.values():
            yield from self._prove_group(group, seed)

    def _prove_group(self, group: Sequence[Obligation], seed: int) -> Iterator[Outcome]:
        solver = z3.SimpleSolver()
        solver.set("random_seed", seed)
        solver.set("timeout", TIMEOUT_MS)
        pool = self.pool(group[0].sorts, self.named(group[0]))
        instances = self.assume(solver, pool)
        for obligation in group:
            started = time.monotonic()
            solver.push()
            goal = obligation.formula(*self.named(obligation))
            solver.add(z3.Not(goal))
            answer = solver.check()
            verdict = {"unsat": "proved", "sat": "counterexample"}.get(str(answer), "unknown")
            model = solver.model() if answer == z3.sat else None
            solver.pop()
            yield Outcome(obligation, verdict, time.monotonic() - started, instances, model)
