"""Parametric induction: every obligation for pools, requests, jobs and workers of any number, without quantifiers.

An obligation says: if the invariants hold before an action, they hold after it. Its negation is satisfied by some
elements, which get names; what is assumed of all elements is instantiated on these, on the action's parameters, and on
a few functions of them. What cannot be satisfied then is proved. What can be is a counterexample to induction, or a
term is missing; finite-scope induction (`finite`) tells which.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import z3

from kvmodel.contract import Discipline
from kvspecs.proof.action import Action, Effect, Parameters
from kvspecs.proof.counting import COUNTS, Chosen, Count, Union, fact_member, fact_union, fact_witness
from kvspecs.proof.instances import ELEMENTS, SORTS, SYMBOLS, Assumption, Pool, Template
from kvspecs.proof.invariants import invariants_of
from kvspecs.proof.logic import Term
from kvspecs.proof.obligations import Obligation, obligations_of
from kvspecs.proof.questions import Goal, Provable, Questions
from kvspecs.proof.state import State, Vocabulary


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
        found = [part(when, name, b) for when, name in parts]
        members, sizes = [member for member, _ in found], [size for _, size in found]
        all_members, size = part(*whole, b)
        return fact_union(doubtful(b), all_members, members, size, sizes, None if changed is None else changed(b))

    return Assumption(f"union-{whole[1]}", count.of, formula)


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


@cache
def invariants_before(discipline: Discipline) -> Mapping[str, Template]:
    """The invariants of the state before, by name: made once for all actions and lemmas."""
    w, s = SYMBOLS.vocabulary(discipline), SYMBOLS.state()
    return {i.name: Template(Assumption(i.name, i.sorts, partial(i.formula, w, s))) for i in invariants_of(discipline)}


class Induction(Provable):
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

    def _assumed(self) -> Iterator[Assumption]:
        for clause in self.effect.guard:
            yield Assumption(f"guard {clause.name}", clause.sorts, clause.formula)
        yield from _facts(self.w, self.before, self.after, self.effect)

    def named(self, obligation: Obligation) -> list[Term]:
        """The elements for which the obligation is denied."""
        seen: dict[str, int] = {}
        names: list[Term] = []
        for sort in obligation.sorts:
            names.append(z3.Const(f"{sort.lower()}{seen.get(sort, 0)}", SORTS[sort]))
            seen[sort] = seen.get(sort, 0) + 1
        return names

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
        base.add("S", self.before.ahead())
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

    @cached_property
    def _assumed_of_all(self) -> tuple[Template, ...]:
        return (*invariants_before(self.w.discipline).values(), *map(Template, self._assumed()))

    @property
    def unchanged(self) -> tuple[Obligation, ...]:
        """Those whose invariant the action does not touch: it holds afterwards since it held before."""
        return self._unchanged

    @cached_property
    def _unchanged(self) -> tuple[Obligation, ...]:
        return tuple(filter(self._is_unchanged, self.obligations))

    def _is_unchanged(self, obligation: Obligation) -> bool:
        if obligation.unchanged is None:
            return False
        names = self.named(obligation)
        after, before = obligation.formula(*names), obligation.unchanged(*names)
        if isinstance(after, bool):
            return after
        return not isinstance(before, bool) and bool(z3.simplify(after).eq(z3.simplify(before)))

    def questions(self, wanted: Callable[[Obligation], bool]) -> Iterator[Questions]:
        groups: dict[str, list[Obligation]] = {}
        for obligation in self.obligations:
            if wanted(obligation) and obligation not in self.unchanged:
                groups.setdefault("".join(sorted(obligation.sorts)), []).append(obligation)
        for group in groups.values():
            goals = [Goal(obligation, obligation.formula(*self.named(obligation))) for obligation in group]
            yield Questions(self._assumed_of_all, self.pool(group[0].sorts, self.named(group[0])), goals)
