"""Nodes of the product search: which pairs of canonical states were reached.

A state is kept as the numbers of its parts (a pool, a request, the job table), of which there are few: millions of
pairs then take a fraction of the memory, and are told apart by comparing numbers.
"""

from collections.abc import Callable, Hashable, Sequence
from enum import Enum, auto
from functools import cache
from itertools import islice

from kvmodel import State
from kvproof.search.allowance import Left, covers

Named = tuple[tuple[int, ...], tuple[int, ...]]
"""A pair of states, as the numbers of their parts."""


class Entered(Enum):
    """What a pair is when it is reached: known; new; or one for which another stands, and that has late reports."""

    KNOWN = auto()
    NEW = auto()
    STOOD_FOR = auto()


NOTHING = Left()
"""What is left where the state itself says it all."""


class Nodes:
    """Pairs of a machine's state and a target's control state, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._states: dict[tuple[int, ...], int] = {}
        self._pairs: dict[tuple[int, ...], tuple[Left, ...]] = {}
        self._stood_for: set[tuple[tuple[int, ...], Left]] = set()

    @property
    def states(self) -> int:
        """Distinct states of the machine (count)."""
        return len(self._states)

    def add(self, state: State, control: Hashable, left: Left = NOTHING) -> bool:
        """Whether the pair is new. Both in canonical names.

        left: what is left where it was reached, if the state does not say so; it is new unless it was reached with as
        much left of everything, or more.
        """
        return self.enter(self.named(state, control), left)

    def named(self, state: State, control: Hashable) -> Named:
        """The name of a pair here."""
        return self._numbered(state), self._numbered(control if isinstance(control, tuple) else (control,))

    def enter(self, pair: Named, left: Left = NOTHING) -> bool:
        """Whether a pair that was named here is new."""
        return self.entered(pair, left) is Entered.NEW

    def entered(self, pair: Named, left: Left) -> "Entered":
        """The same, and whether another stands for it that is not the same."""
        state, control = pair
        number = self._states.setdefault(state, len(self._states))
        key = (number, *control)
        before = self._pairs.setdefault(key, ())
        if not any(covers(other, left) for other in before):
            self._pairs[key] = (*before, left) if before else _only(left)
            return Entered.NEW
        if not left.late or left in before or (key, left) in self._stood_for:
            return Entered.KNOWN
        self._stood_for.add((key, left))
        return Entered.STOOD_FOR

    @property
    def parts(self) -> int:
        """Distinct parts of states (count)."""
        return len(self._numbers)

    def parts_from(self, number: int) -> list[Hashable]:
        """The parts that were named after so many."""
        return list(islice(self._numbers, number, None))

    def translation(self, known: int, parts: Sequence[Hashable]) -> Callable[[Named], Named]:
        """From names elsewhere, where the first `known` parts were as they are here and then came these parts, to names
        here."""
        since = self._numbered(tuple(parts))

        def here(names: tuple[int, ...]) -> tuple[int, ...]:
            return tuple([name if name < known else since[name - known] for name in names])

        return lambda pair: (here(pair[0]), here(pair[1]))

    def _numbered(self, parts: tuple[Hashable, ...]) -> tuple[int, ...]:
        numbers = self._numbers
        return tuple([numbers.setdefault(part, len(numbers)) for part in parts])


@cache
def _only(left: Left) -> tuple[Left, ...]:
    """One for all the pairs that were reached with so much left, and in no other way: mostly that is all of them."""
    return (left,)
