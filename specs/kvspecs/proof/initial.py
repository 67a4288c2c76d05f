"""The initial state, for every size: every table is empty, every block is free. That it satisfies every invariant is an
obligation of the induction, like that actions keep them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import z3

from kvmodel.contract import Discipline
from kvspecs.proof.counting import COUNTS, fact_witness
from kvspecs.proof.instances import ELEMENTS, SORTS, SYMBOLS, Assumption, Pool, Template
from kvspecs.proof.invariants import invariants_of
from kvspecs.proof.logic import Term
from kvspecs.proof.obligations import INITIAL, Obligation
from kvspecs.proof.questions import Goal, Provable, Questions
from kvspecs.proof.state import TABLES, Cardinalities, State, Vocabulary


def initial(w: Vocabulary, counts: Cardinalities, otherwise: Mapping[str, Term]) -> State:
    """The tables at the beginning. `otherwise`: by sort, some element for entries that mean nothing yet."""
    values: Mapping[str, Term] = {"B": False, "Z": 0, "J": 0, "S": -1, "K": w.none, "P": w.absent, "V": w.gone}
    tables = {name: _constant(values.get(value, otherwise.get(value))) for name, (_, value) in TABLES.items()}
    tables |= {"device_queued": _constant(1), "host_queued": _constant(1)}
    return State(counts=counts, **tables)


def _constant(value: Term) -> Callable[..., Term]:
    return lambda *elements: value


class Start(Provable):
    """The obligations of the initial state. `alter` changes it: a bug, seeded on purpose."""

    action = None
    values: Mapping[str, Any] = {}

    def __init__(self, discipline: Discipline, alter: Callable[[Vocabulary, State], State] | None = None) -> None:
        self.w = SYMBOLS.vocabulary(discipline)
        otherwise = {sort: z3.Const(f"any_{sort}", SORTS[sort]) for sort in "DHRW"}
        state = initial(self.w, SYMBOLS.cardinalities("at first"), otherwise)
        self.before = self.after = state if alter is None else alter(self.w, state)
        self.obligations = tuple(
            Obligation(INITIAL, i.name, i.serves, i.sorts, partial(i.formula, self.w, self.before))
            for i in invariants_of(discipline)
        )

    def named(self, obligation: Obligation) -> list[Term]:
        """The elements for which the obligation is denied."""
        return [z3.Const(f"{sort.lower()}{index}", SORTS[sort]) for index, sort in enumerate(obligation.sorts)]

    def looked_at(self, obligation: Obligation) -> Mapping[str, Sequence[Term]]:
        """The elements that its proof looks at, by sort."""
        return self._pool(obligation).terms

    def _pool(self, obligation: Obligation) -> Pool:
        pool = Pool()
        for sort, term in zip(obligation.sorts, self.named(obligation), strict=True):
            if sort in ELEMENTS:
                pool.add(sort, term)
        return pool

    def questions(self, wanted: Callable[[Obligation], bool]) -> Iterator[Questions]:
        assumed = tuple(map(Template, self._facts()))
        for obligation in filter(wanted, self.obligations):
            goal = Goal(obligation, obligation.formula(*self.named(obligation)))
            yield Questions(assumed, self._pool(obligation), [goal])

    def _facts(self) -> Iterator[Assumption]:
        """A set without members has no size."""
        for name, count in COUNTS.items():
            some = z3.Function(f"some_{name}_at_first", SORTS[count.of], SORTS[count.counted])

            def fact(block: Term, name: str = name, some: Any = some) -> Term:
                member = COUNTS[name].member
                size = getattr(self.before.counts, name)(block)
                return fact_witness(some(block), lambda x: member(self.w, self.before, x, block), size)

            yield Assumption(f"some-{name}", count.of, fact)
