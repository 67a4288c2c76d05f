"""What is assumed of all elements, put on the terms that a proof looks at: quantifiers, without a solver's."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import z3

from kvspecs.proof.digest import digest_of, joined
from kvspecs.proof.logic import Term
from kvspecs.proof.symbols import of_any_size

ELEMENTS = "DHRWKJS"

SYMBOLS = of_any_size()
SORTS = SYMBOLS.sorts


def digest_of_sorts() -> str:
    """A name for the sorts; of an enumeration it says which values there are."""
    words: list[str] = []
    for letter, sort in SORTS.items():
        words += (letter, sort.sexpr())
        if isinstance(sort, z3.DatatypeSortRef):
            words += (sort.constructor(index).sexpr() for index in range(sort.num_constructors()))
    return joined(*words)


class Assumption(NamedTuple):
    """A formula that holds of all elements of `sorts`, to be instantiated."""

    name: str
    sorts: str
    formula: Callable[..., Term]


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

    def digest(self) -> str:
        """A name for these terms, whoever made them."""
        return joined(*(word for sort, terms in self.terms.items() for word in (sort, *map(digest_of, terms))))


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

    def digest(self) -> str:
        """A name for what it says."""
        return joined(self.sorts, digest_of(self.formula))
