"""Nodes of the product search: which pairs of canonical states were reached.

A state is kept as the numbers of its parts (a pool, a request, the job table), of which there are few: millions of
pairs then take a fraction of the memory, and are told apart by comparing numbers.
"""

from collections.abc import Hashable

from kvmodel import State


class Nodes:
    """Pairs of a machine's state and a target's control state, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._states: dict[tuple[int, ...], int] = {}
        self._pairs: set[tuple[int, ...]] = set()

    @property
    def states(self) -> int:
        """Distinct states of the machine (count)."""
        return len(self._states)

    def add(self, state: State, control: Hashable) -> bool:
        """Whether the pair is new. Both in canonical names."""
        number = self._states.setdefault(self._numbered(state), len(self._states))
        pair = (number, *self._numbered(control if isinstance(control, tuple) else (control,)))
        before = len(self._pairs)
        self._pairs.add(pair)
        return len(self._pairs) > before

    def _numbered(self, parts: tuple[Hashable, ...]) -> tuple[int, ...]:
        numbers = self._numbers
        return tuple([numbers.setdefault(part, len(numbers)) for part in parts])
