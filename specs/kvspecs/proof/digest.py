"""A name for a formula: a hash that is the same in every run, whatever was built before, and whoever prints it.

z3's own text of a formula will not do: it names shared parts by where they lie in memory.
"""

import hashlib

import z3

from kvspecs.proof.logic import Term

_KNOWN: dict[int, tuple[Term, str]] = {}
"""By z3's id of a term. The term is kept, since z3 gives the id of one that is gone to another."""


def joined(*words: str) -> str:
    """One hash of several words."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]


def digest_of(term: Term) -> str:
    """The hash of a formula of z3 without quantifiers, or of a truth value of Python. Raises TypeError for another."""
    if isinstance(term, bool):
        term = z3.BoolVal(term)
    known = _KNOWN.get(term.get_id())
    if known is None:
        known = _KNOWN[term.get_id()] = (term, joined(*_words(term)))
    return known[1]


def _words(term: Term) -> tuple[str, ...]:
    """What it is made of: its head with all sorts, and the names of its arguments."""
    if z3.is_var(term):
        return ("variable", str(z3.get_var_index(term)), term.sort().sexpr())
    if z3.is_int_value(term):
        return ("number", term.as_string())
    if not z3.is_app(term):
        raise TypeError(f"there is no name for a formula with quantifiers: {term!s:.60}")
    return (term.decl().sexpr(), *map(digest_of, term.children()))
