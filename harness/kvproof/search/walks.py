"""Walks: paths through a machine's states that together take every transition, or every pair of action and phase.

For devices whose state cannot be copied out: each walk starts afresh.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kvmodel import Action, Machine, State
from kvmodel import actions as act
from kvproof.search.canonical import canonical, canonical_with
from kvproof.search.names import with_names
from kvproof.search.phases import Label, pairs_of
from kvproof.targets.command import Command
from kvproof.targets.wording import command_of


class Walk(NamedTuple):
    """One walk from the initial state: commands that lead to a state by transitions taken before, and the state."""

    commands: tuple[Command, ...]
    number: int
    state: State


class Transitions:
    """Every transition of a machine, up to renaming, and which of them are still to be taken.

    states   canonical; edges[number]: (action in canonical names, number of the state after it)
    reached  for each state: the state before it on a shortest way, and the command from there in that way's names
    """

    def __init__(self, machine: Machine) -> None:
        """Explores the machine."""
        self.machine = machine
        contract = machine.setting.contract
        start = machine.initial()
        self.number: dict[State, int] = {canonical(contract, start): 0}
        self.states: list[State] = list(self.number)
        self.reached: list[tuple[int, Command | None]] = [(-1, None)]
        self.edges: list[list[tuple[Action, int]]] = []
        self._as_reached: list[State] = [start]
        for here, state in enumerate(self.states):
            row: list[tuple[Action, int]] = []
            for action in machine.actions(state):
                after = canonical(contract, machine.step(state, action))
                target = self.number.setdefault(after, len(self.states))
                if target == len(self.states):
                    way = named(machine, self._as_reached[here], action)
                    self.states.append(after)
                    self.reached.append((here, command_of(way)))
                    self._as_reached.append(machine.step(self._as_reached[here], way))
                row.append((action, target))
            self.edges.append(row)
        self._left: list[list[int]] = [list(range(len(row))) for row in self.edges]
        self.total = sum(len(row) for row in self.edges)
        self.to_take = self.total

    def walks(self) -> Iterator[Walk]:
        """Walks to states with transitions not taken, nearest first, until there are none."""
        for number, left in enumerate(self._left):
            while left:
                yield Walk(self._way(number), number, self._as_reached[number])

    def _way(self, number: int) -> tuple[Command, ...]:
        commands: list[Command] = []
        while number:
            number, command = self.reached[number]
            assert command is not None
            commands.append(command)
        return tuple(reversed(commands))

    def take(self, number: int) -> tuple[Action, int] | None:
        """A transition from this state that was not taken, taken now: the one that leads to most others; or None."""
        left = self._left[number]
        if not left:
            return None
        row = self.edges[number]
        position = max(left, key=lambda position: len(self._left[row[position][1]]))
        left.remove(position)
        self.to_take -= 1
        return row[position]


def named(machine: Machine, state: State, action: Action) -> Action:
    """An action of the canonical form of `state`, in the names of `state`."""
    _, renaming = canonical_with(machine.setting.contract, state)
    found = with_names(action, renaming)
    if isinstance(found, act.DuplicateReport) and found.job < 0:
        present = {job.id for job in state.jobs}
        return act.DuplicateReport(found.worker, max(n for n in range(state.next_job) if n not in present))
    return found


class Pairs:
    """A shortest way to each pair of action and phase, in breadth-first order.

    states, finished  how many states were explored, and whether those are all
    ways              for each pair: actions in canonical names, the last of which is the pair's
    """

    def __init__(self, machine: Machine, cut: Callable[[], bool]) -> None:
        """Explores the machine."""
        contract = machine.setting.contract
        first = canonical(contract, machine.initial())
        known = {first}
        frontier: deque[tuple[int, State]] = deque([(0, first)])
        came: list[tuple[int, Action | None]] = [(-1, None)]
        self.ways: dict[Label, list[Action]] = {}
        while frontier and (len(came) & 255 or not cut()):
            number, state = frontier.popleft()
            for action in machine.actions(state):
                new = [label for label in pairs_of(state, action) if label not in self.ways]
                if new:
                    way = [*_path(came, number), action]
                    self.ways |= dict.fromkeys(new, way)
                after = canonical(contract, machine.step(state, action))
                if after not in known:
                    known.add(after)
                    frontier.append((len(came), after))
                    came.append((number, action))
        self.finished = not frontier
        self.states = len(came)


def _path(came: list[tuple[int, Action | None]], number: int) -> list[Action]:
    path: list[Action] = []
    while number > 0:
        number, action = came[number]
        assert action is not None
        path.append(action)
    return path[::-1]
