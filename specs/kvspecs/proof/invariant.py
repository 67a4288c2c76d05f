"""What an invariant is: a formula that holds of every reachable state, and why it is there."""

from collections.abc import Callable
from typing import NamedTuple

from kvspecs.proof.logic import Term
from kvspecs.proof.state import State, Vocabulary


class Invariant(NamedTuple):
    """For all elements of `sorts` the formula holds.

    reason    one line: why it is true, or what it is needed for
    serves    the property that it states, or that needs it first
    only      the discipline that has it, or "" for both
    """

    name: str
    sorts: str
    formula: Callable[..., Term]
    reason: str
    serves: str
    only: str = ""

    def holds(self, w: Vocabulary, s: State, *elements: Term) -> Term:
        """The formula for these elements."""
        return self.formula(w, s, *elements)
