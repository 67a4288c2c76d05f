"""Nodes of the product search: which pairs of canonical states were reached.

A state is kept as the numbers of its parts (a pool, a request, the job table), of which there are few: millions of
pairs then take a fraction of the memory, and are told apart by comparing numbers.
"""

from collections.abc import Hashable
from functools import cache

from kvmodel import State
from kvproof.search.allowance import Left, covers


class Nodes:
    """Pairs of a machine's state and a target's control state, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._states: dict[tuple[int, ...], int] = {}
        self._pairs: dict[tuple[int, ...], tuple[Left, ...]] = {}

    @property
    def states(self) -> int:
        """Distinct states of the machine (count)."""
        return len(self._states)

    def add(self, state: State, control: Hashable, left: Left = ()) -> bool:
        """Whether the pair is new. Both in canonical names.

        left: what is left where it was reached, if the state does not say so; it is new unless it was reached with as
        much left of everything, or more.
        """
        number = self._states.setdefault(self._numbered(state), len(self._states))
        pair = (number, *self._numbered(control if isinstance(control, tuple) else (control,)))
        before = self._pairs.setdefault(pair, ())
        if any(covers(other, left) for other in before):
            return False
        self._pairs[pair] = (*before, left) if before else _only(left)
        return True

    def _numbered(self, parts: tuple[Hashable, ...]) -> tuple[int, ...]:
        numbers = self._numbers
        return tuple([numbers.setdefault(part, len(numbers)) for part in parts])


@cache
def _only(left: Left) -> tuple[Left, ...]:
    """One for all the pairs that were reached with so much left, and in no other way: mostly that is all of them."""
    return (left,)
