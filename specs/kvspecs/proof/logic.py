"""Connectives that mean the same on z3's terms and on Python's values.

Formulas are written once, as Python functions. Applied to Python values they compute; applied to terms they build a
formula: of z3, or of whoever made the terms (`compilation`). z3 is imported only when a term of it appears.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Term = Any
"""A block, a key, an id, a count or a truth value: of Python, or a term of z3 that stands for one."""

Unary = Callable[[Term], Term]
Binary = Callable[[Term, Term], Term]
Ternary = Callable[[Term, Term, Term], Term]


class Connectives(Protocol):
    """Who builds formulas of terms. Terms that are not z3's name theirs in the attribute `connectives`."""

    def conjunction(self, terms: Sequence[Term]) -> Term: ...
    def disjunction(self, terms: Sequence[Term]) -> Term: ...
    def negation(self, term: Term) -> Term: ...
    def choice(self, condition: Term, then: Term, otherwise: Term) -> Term: ...


class _OfZ3:
    """z3's connectives."""

    def conjunction(self, terms: Sequence[Term]) -> Term:
        import z3

        return z3.And(list(terms))

    def disjunction(self, terms: Sequence[Term]) -> Term:
        import z3

        return z3.Or(list(terms))

    def negation(self, term: Term) -> Term:
        import z3

        return z3.Not(term)

    def choice(self, condition: Term, then: Term, otherwise: Term) -> Term:
        import z3

        return z3.If(condition, then, otherwise)


_OF_Z3 = _OfZ3()


def _connectives(term: Term) -> Connectives:
    made: Connectives = getattr(term, "connectives", _OF_Z3)
    return made


def all_of(*parts: Term) -> Term:
    """Conjunction; of nothing, True."""
    terms: list[Term] = []
    for part in parts:
        if part is False:
            return False
        if part is not True:
            terms.append(part)
    if not terms:
        return True
    if len(terms) == 1:
        return terms[0]
    return _connectives(terms[0]).conjunction(terms)


def any_of(*parts: Term) -> Term:
    """Disjunction; of nothing, False."""
    terms: list[Term] = []
    for part in parts:
        if part is True:
            return True
        if part is not False:
            terms.append(part)
    if not terms:
        return False
    if len(terms) == 1:
        return terms[0]
    return _connectives(terms[0]).disjunction(terms)


def no(part: Term) -> Term:
    """Negation."""
    if part is True or part is False:
        return not part
    return _connectives(part).negation(part)


def implies(premise: Term, conclusion: Term) -> Term:
    return any_of(no(premise), conclusion)


def iff(left: Term, right: Term) -> Term:
    if isinstance(left, bool):
        return right if left else no(right)
    if isinstance(right, bool):
        return left if right else no(left)
    return left == right


def pick(condition: Term, then: Term, otherwise: Term) -> Term:
    """`then` if the condition holds, else `otherwise`."""
    if condition is True:
        return then
    if condition is False:
        return otherwise
    if isinstance(then, bool) or isinstance(otherwise, bool):
        return all_of(implies(condition, then), any_of(condition, otherwise))
    return _connectives(condition).choice(condition, then, otherwise)


def one(condition: Term) -> Term:
    """1 if the condition holds, else 0."""
    return pick(condition, 1, 0)


def differ(left: Term, right: Term) -> Term:
    return no(left == right)
