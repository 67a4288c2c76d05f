"""The product search: every pair of a machine's state and a target's control state, every command from each of them.

A node is the pair (canonical state of the machine, control state of the target in the same names). Two ways to one
state of the machine that leave the target in different control states are both followed: that is how stale hidden
state is found (vLLM PR 48102).
"""

import gc
from array import array
from collections import deque
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from kvmodel import ACTIONS, Machine, State
from kvproof.search.canonical import canonical_with
from kvproof.search.phases import Label, pairs_of
from kvproof.targets import journal
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed, explain
from kvproof.targets.guarded import offered, own_state, performed, seen
from kvproof.targets.invariants import Invariants
from kvproof.targets.judging import at_start, between
from kvproof.targets.outcome import Crashed
from kvproof.targets.target import Abstracting, Offering, Snapshotting, Target
from kvproof.targets.view import View, compared_fields, offers_of
from kvproof.targets.wording import command_of, reportable


class Searchable(Target, Snapshotting, Offering, Protocol):
    """What the product search needs of a target."""


class Searched(NamedTuple):
    """What a product search has seen.

    pairs     nodes; states: distinct canonical states of the machine among them
    edges     commands taken; finished: none is left
    commands  from the initial state to the divergence, which is a shortest way; divergence: what is wrong there
    actions   how often each action of the machine was taken; fields: those of the view that were compared
    """

    pairs: int
    states: int
    edges: int
    finished: bool
    commands: tuple[Command, ...]
    divergence: Divergence | None
    actions: dict[str, int]
    fields: frozenset[str]


ASKED_AT_FIRST = 2_000
"""At so many pairs of a search, its first ones, all invariants of the proofs are asked of the target's own state; at
the start, where every table is empty, they are not."""

THEN_ONE_IN = 8
"""And from there on at one pair in so many: to ask them at every pair takes a fifth of the whole search."""


class Product:
    """All reachable pairs of one machine and one target, numbered in the order of their discovery.

    composites  also the commands that stand for several actions: a whole scheduling call, a worker's whole batch
    phases      gets every pair of action and phase that was met, unless it is None
    asked       pairs at which the invariants of the proofs were asked (count); passed_over: pairs at which they were
                not, because from ASKED_AT_FIRST on they are asked of a sample
    known       says of a divergence that it is known: the search goes on past it, and keeps the first in `passed_by`
    """

    def __init__(
        self,
        machine: Machine,
        target: Searchable,
        composites: bool,
        known: Callable[[Divergence], bool] = lambda divergence: False,
        phases: set[Label] | None = None,
    ) -> None:
        self.machine = machine
        self.target = target
        self.composites = composites
        self.invariants = Invariants(machine.setting)
        self._abstracting = target if isinstance(target, Abstracting) else None
        self.known = known
        self.phases = phases
        self.passed_by: tuple[tuple[Command, ...], Divergence] | None = None
        self.pairs = 0
        self.parent = array("i")
        self.via: list[Command | None] = []
        self.edges = 0
        self.asked = 0
        self.passed_over = 0
        self.taken = dict.fromkeys((kind.__name__ for kind in ACTIONS), 0)
        self._known: set[tuple[State, Hashable]] = set()
        self._canonical: dict[State, State] = {}
        self._open: deque[tuple[int, State, bytes]] = deque()

    @property
    def gives_own_state(self) -> bool:
        """Whether the properties are asked of the target's own state, at every node but the start."""
        return self._abstracting is not None

    def _asks_proofs(self) -> bool:
        """Whether the invariants of the proofs are asked at the pair that was added last, too."""
        if self.invariants.specification is None:
            return False
        asks = self.pairs <= ASKED_AT_FIRST or not self.pairs % THEN_ONE_IN
        if asks:
            self.asked += 1
        else:
            self.passed_over += 1
        return asks

    def search(self, cut: Callable[[], bool], progress: Callable[[str], None]) -> Searched:
        """Take every command edge, shortest ways first. Stops at the first divergence."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            finished, commands, divergence = self._search(cut, progress)
            if divergence is None and self.passed_by is not None:
                commands, divergence = self.passed_by
        finally:
            if was_enabled:
                gc.enable()
        view = seen(self.target)
        fields = frozenset[str]() if isinstance(view, Crashed) else compared_fields(self.target, view)
        return Searched(
            self.pairs, len(self._canonical), self.edges, finished, commands, divergence, self.taken, fields
        )

    def _search(
        self, cut: Callable[[], bool], progress: Callable[[str], None]
    ) -> tuple[bool, tuple[Command, ...], Divergence | None]:
        machine, target = self.machine, self.target
        start = machine.initial()
        difference = at_start(machine, target)
        if difference is not None:
            return False, (), difference
        self._add(start, -1, None)
        while self._open:
            number, state, snapshot = self._open.popleft()
            actions = machine.actions(state)
            self._put_back(number, snapshot)
            difference = between(machine, state, self.via[number], offers_of(actions), offered(target))
            if difference is not None and not self._pass_by(self.path(number), difference):
                return False, self.path(number), difference
            before = self._own_state()
            if isinstance(before, Crashed):
                return False, self.path(number), crashed(self.via[number], before)
            untouched = True
            for command in self._commands(state, [command_of(action) for action in actions]):
                self.edges += 1
                if not untouched:
                    self._put_back(number, snapshot)
                untouched = False
                outcome, view = performed(target, command)
                explained = explain(machine, state, command, outcome, view, True)
                if isinstance(explained, Divergence):
                    if self._pass_by((*self.path(number), command), explained):
                        continue
                    return False, (*self.path(number), command), explained
                for action in explained.actions:
                    self.taken[type(action).__name__] += 1
                if self.phases is not None and len(explained.actions) == 1:
                    self.phases.update(pairs_of(state, explained.actions[0]))
                fresh = bool(explained.actions) and self._add(explained.state, number, command)
                # A step to a known pair is not judged, for speed. What the view shows of it is what the machine did,
                # which keeps what is true of steps; what no view shows is judged at the first step to the pair alone.
                if fresh and before is not None and (after := self._own_state(view)) is not None:
                    difference = self.invariants.judged(before, command, explained.actions, after, self._asks_proofs())
                    if difference is not None and not self._pass_by((*self.path(number), command), difference):
                        return False, (*self.path(number), command), difference
            if not number & 127:
                progress(f"{self.pairs:,} pairs, {self.edges:,} edges")
                if cut():
                    return False, (), None
        return True, (), None

    def _put_back(self, number: int, snapshot: bytes) -> None:
        journal.put_back(self.machine.setting, lambda: self.path(number))
        self.target.restore(snapshot)

    def _pass_by(self, commands: tuple[Command, ...], divergence: Divergence) -> bool:
        if not self.known(divergence):
            return False
        if self.passed_by is None:
            self.passed_by = (commands, divergence)
        return True

    def _commands(self, state: State, single: list[Command]) -> list[Command]:
        if not self.composites:
            return single
        batches = [
            Command("report_all", (worker,))
            for worker in range(len(state.device_contents))
            if len(reportable(state, worker)) > 1
        ]
        return [*single, Command("schedule"), *batches]

    def _own_state(self, view: View | None = None) -> State | Crashed | None:
        """The target's own state, if it can give it. view: of the target now, if that is known."""
        if self._abstracting is None:
            return None
        shown = seen(self.target) if view is None else view
        return shown if isinstance(shown, Crashed) else own_state(self._abstracting, shown)

    def _add(self, state: State, parent: int, command: Command | None) -> bool:
        """A node, unless it is known. True: it is new."""
        canonical, renaming = canonical_with(self.machine.setting.contract, state)
        canonical = self._canonical.setdefault(canonical, canonical)
        key = (canonical, self.target.control(renaming))
        if key in self._known:
            return False
        self._known.add(key)
        self._open.append((self.pairs, state, self.target.save()))
        self.pairs += 1
        self.parent.append(parent)
        self.via.append(command)
        return True

    @property
    def depth(self) -> int:
        """How many commands lead to the node that was found last: every sequence of fewer was taken."""
        return len(self.path(self.pairs - 1))

    def path(self, number: int) -> tuple[Command, ...]:
        """A shortest way to a node."""
        commands: list[Command] = []
        while number > 0:
            command = self.via[number]
            assert command is not None
            commands.append(command)
            number = self.parent[number]
        return tuple(reversed(commands))
