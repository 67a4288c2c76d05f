"""The product search: every pair of a machine's state and a target's control state, every command from each of them.

A node is the pair (canonical state of the machine, control state of the target in the same names). Two ways to one
state of the machine that leave the target in different control states are both followed: that is how stale hidden
state is found (vLLM PR 48102).
"""

import gc
from array import array
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from kvmodel import ACTIONS, Action, Machine, State
from kvproof.search.allowance import Left, late_reports, left_in, named_late, reports_may_wait, unspent, without
from kvproof.search.canonical import canonical_with
from kvproof.search.nodes import NOTHING, Entered, Named, Nodes
from kvproof.search.phases import Label, pairs_of
from kvproof.search.sharing import shared
from kvproof.targets import journal
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import Accounted, accounted, borne_out, crashed, explain
from kvproof.targets.guarded import carried_out, offered, own_state, seen
from kvproof.targets.invariants import Invariants
from kvproof.targets.judging import at_start, between
from kvproof.targets.outcome import Answer, Crashed
from kvproof.targets.target import Abstracting, Discounting, Offering, Snapshotting, Target
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

ASKED_OF_A_PART = 100
"""The same where a search is one of the many narrow ones of a job."""

THEN_ONE_IN = 8
"""And from there on at one pair in so many: to ask them at every pair takes a tenth of the whole search."""


SHARED_FROM = 4_000
"""Nodes of one level from which on several processes take it: then it takes longer than to tell what was found."""


class _Open(NamedTuple):
    """A node whose commands have not been taken.

    own        the target's own state, if it can give it
    left       what is left there, where its name does not say so
    stood_for  another node stands for it: only the reports that come late there are taken
    """

    number: int
    state: State
    snapshot: Hashable
    own: State | Crashed | None
    left: Left = NOTHING
    stood_for: bool = False


class _Reached(NamedTuple):
    """Where one command led. actions: that account for it; met: the search has been just here before."""

    actions: tuple[Action, ...]
    state: State
    snapshot: Hashable
    own: State | Crashed | None
    met: bool


class _Ended(NamedTuple):
    """Why a search stops before all is taken: it was cut, or after these commands there is a divergence."""

    commands: tuple[Command, ...]
    divergence: Divergence | None


class _Part(NamedTuple):
    """What another process has found in its part of a level.

    known, parts  how many parts of states it had names for when it began, and those that it has named since
    found         the nodes that are new to it, each with its name there, its parent, and the command that leads to it
    unasked       the actions that lead to those, by position, that break no property: their proofs are yet to be asked
    """

    ended: _Ended | None
    edges: int
    taken: dict[str, int]
    phases: set[Label] | None
    passed_by: tuple[tuple[Command, ...], Divergence] | None
    known: int
    parts: list[Hashable]
    found: list[tuple[_Open, Named, int, Command | None]]
    unasked: dict[int, tuple[Action, ...]]


class Product:
    """All reachable pairs of one machine and one target, numbered in the order of their discovery.

    composites  also the commands that stand for several actions: a whole scheduling call, a worker's whole batch
    phases      gets every pair of action and phase that was met, unless it is None
    asked       pairs at which the invariants of the proofs were asked (count); passed_over: pairs at which they were
                not, because from `asked_at_first` on they are asked of a sample
    known       says of a divergence that it is known: the search goes on past it, and keeps the first in `passed_by`
    processes   how many take a level together, if it is large; they find the same in the same order as one does, but
                may have taken more edges where an invariant of the proofs ends the search
    allowance   a pair stands for those that differ from it in having less left alone (`kvproof.search.allowance`)
    late        and for those in which more reports of forgotten jobs have come, where those change nothing
    stood_for   pairs for which another stands and of which just those reports were taken (count)
    """

    def __init__(
        self,
        machine: Machine,
        target: Searchable,
        composites: bool,
        known: Callable[[Divergence], bool] = lambda divergence: False,
        phases: set[Label] | None = None,
        allowance: bool = False,
        late: bool = False,
        processes: int = 1,
        asked_at_first: int = ASKED_AT_FIRST,
    ) -> None:
        self.machine = machine
        self.target = target
        self.composites = composites
        self.invariants = Invariants(machine.setting)
        self.asked_at_first = asked_at_first
        self._abstracting = target if isinstance(target, Abstracting) else None
        self.known = known
        self.phases = phases
        self._start = machine.initial() if allowance else None
        wait = allowance and late and reports_may_wait(machine.setting)
        self._discounting = target if wait and isinstance(target, Discounting) else None
        self.passed_by: tuple[tuple[Command, ...], Divergence] | None = None
        self.pairs = 0
        self.stood_for = 0
        self.parent = array("i")
        self.via: list[Command | None] = []
        self.edges = 0
        self.asked = 0
        self.passed_over = 0
        self.taken = dict.fromkeys((kind.__name__ for kind in ACTIONS), 0)
        self._nodes = Nodes()
        self._open: list[_Open] = []
        self.processes = processes
        self._aside: list[Named] | None = None
        """In a process that takes a part of a level: the names of the nodes that it has found."""
        self._unasked: dict[int, tuple[Action, ...]] = {}
        """There, too: the actions that lead to the nodes that break no property, by their position among those."""
        self._met: dict[int, list[tuple[State, Hashable, State | Crashed | None]]] = {}
        """By the hash of the state, which takes a while and is looked up in two tables at every edge."""
        self._met_before = self._met

    @property
    def gives_own_state(self) -> bool:
        """Whether the properties are asked of the target's own state, at every node but the start."""
        return self._abstracting is not None

    def _asks_proofs(self) -> bool:
        """Whether the invariants of the proofs are asked at the pair that was added last, too."""
        if self.invariants.specification is None or self._aside is not None:
            return False
        asks = self.pairs <= self.asked_at_first or not self.pairs % THEN_ONE_IN
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
        return Searched(self.pairs, self._nodes.states, self.edges, finished, commands, divergence, self.taken, fields)

    def _search(
        self, cut: Callable[[], bool], progress: Callable[[str], None]
    ) -> tuple[bool, tuple[Command, ...], Divergence | None]:
        machine, target = self.machine, self.target
        start = machine.initial()
        difference = at_start(machine, target)
        if difference is not None:
            return False, (), difference
        self._add(self._come_to((), start, target.save(), seen(target)), -1, None)
        while self._open:
            level, self._open = self._open, []
            # Nodes of one level mostly reach the same. What was met two levels ago is forgotten, since it takes memory:
            # if it is met again it is looked at again, and found to be a known node.
            self._met_before, self._met = self._met, {}
            here, aside = partial(self._take, cut=cut, progress=progress), partial(self._take_aside, cut=cut)
            is_shared = self.processes > 1 and len(level) >= SHARED_FROM
            ended = shared(level, self.processes, here, aside, self._take_in) if is_shared else here(level)
            if ended is not None:
                return False, ended.commands, ended.divergence
        return True, (), None

    def _take(self, level: Sequence[_Open], cut: Callable[[], bool], progress: Callable[[str], None]) -> _Ended | None:
        """Take every command of these nodes."""
        for node in level:
            ended = self._take_from(node)
            if ended is not None:
                return ended
            if not node.number & 127:
                progress(f"{self.pairs:,} pairs, {self.edges:,} edges")
                if cut():
                    return _Ended((), None)
        return None

    def _take_from(self, node: _Open) -> _Ended | None:
        machine, target = self.machine, self.target
        number, state, snapshot, before = node[:4]
        actions = machine.actions(state)
        self._put_back(number, snapshot)
        difference = between(machine, state, self.via[number], offers_of(actions), offered(target))
        if difference is not None and not self._pass_by(self.path(number), difference):
            return _Ended(self.path(number), difference)
        if isinstance(before, Crashed):
            return _Ended(self.path(number), crashed(self.via[number], before))
        untouched = True
        for command in self._late_commands(state) if node.stood_for else self._commands(state, actions):
            self.edges += 1
            if not untouched:
                self._put_back(number, snapshot)
            untouched = False
            reached = self._taken(state, command)
            if isinstance(reached, Divergence):
                difference = reached
            else:
                self._count(state, reached.actions)
                fresh = not reached.met and self._add(reached, number, command)
                difference = None if before is None else self._judged(before, command, reached, fresh)
            if difference is not None and not self._pass_by((*self.path(number), command), difference):
                return _Ended((*self.path(number), command), difference)
        return None

    def _take_aside(self, part: Sequence[_Open], cut: Callable[[], bool]) -> _Part:
        """What another process does, and tells. It asks no invariants of the proofs: at which pairs they are asked goes
        by their numbers, which it does not know."""
        known, first = self._nodes.parts, self.pairs
        self._aside = []
        self.edges, self.taken, self.passed_by = 0, dict.fromkeys(self.taken, 0), None
        ended = self._take(part, cut, lambda said: None)
        parts = self._nodes.parts_from(known)
        found = list(zip(self._open, self._aside, self.parent[first:], self.via[first:], strict=True))
        return _Part(ended, self.edges, self.taken, self.phases, self.passed_by, known, parts, found, self._unasked)

    def _take_in(self, part: _Part) -> _Ended | None:
        """Go on as if this process had taken the part."""
        self.edges += part.edges
        for kind, times in part.taken.items():
            self.taken[kind] += times
        if self.phases is not None and part.phases is not None:
            self.phases |= part.phases
        self.passed_by = self.passed_by or part.passed_by
        translated = self._nodes.translation(part.known, part.parts)
        for position, (node, name, parent, command) in enumerate(part.found):
            assert command is not None
            if not self._enter(translated(name), node, parent, command) or node.own is None:
                continue
            if self._asks_proofs() and position in part.unasked and not isinstance(node.own, Crashed):
                difference = self.invariants.judged_by_proofs(command, part.unasked[position], node.own)
                if difference is not None and not self._pass_by((*self.path(parent), command), difference):
                    return _Ended((*self.path(parent), command), difference)
        return part.ended

    def _taken(self, state: State, command: Command) -> _Reached | Divergence:
        """Where one command of this state leads. What was met before is not looked at again: what is seen of a target
        comes of what is in its snapshot, as `Snapshotting.save` demands, and was compared with the same state of the
        machine."""
        machine, target = self.machine, self.target
        outcome = carried_out(target, command)
        if isinstance(outcome, Crashed):
            return crashed(command, outcome)
        done = accounted(machine, state, command, outcome, True) if isinstance(outcome, Answer) else None
        snapshot = target.save()
        if isinstance(done, Accounted) and (met := self._met_again(done.actions, done.after, snapshot)) is not None:
            return met
        view = seen(target)
        if isinstance(view, Crashed):
            return crashed(command, view)
        if isinstance(done, Divergence):
            return done
        if done is None:
            explained = explain(machine, state, command, outcome, view, True)
            if isinstance(explained, Divergence):
                return explained
            actions, after = explained
            if (met := self._met_again(actions, after, snapshot)) is not None:
                return met
        else:
            difference = borne_out(machine, command, done, view, True)
            if difference is not None:
                return difference
            actions, after = done.actions, done.after
        return self._come_to(actions, after, snapshot, view)

    def _met_again(self, actions: tuple[Action, ...], state: State, snapshot: Hashable) -> _Reached | None:
        """This place, if the search has been there not long ago."""
        place = hash(state)
        for met in (self._met, self._met_before):
            for known, there, own in met.get(place, ()):
                if there == snapshot and known == state:
                    return _Reached(actions, state, snapshot, own, True)
        return None

    def _come_to(self, actions: tuple[Action, ...], state: State, snapshot: Hashable, view: View | Crashed) -> _Reached:
        """This place, met for the first time for a while. view: of the target now."""
        own = view if isinstance(view, Crashed) else self._own_state(view)
        self._met.setdefault(hash(state), []).append((state, snapshot, own))
        return _Reached(actions, state, snapshot, own, False)

    def _count(self, state: State, actions: tuple[Action, ...]) -> None:
        for action in actions:
            self.taken[type(action).__name__] += 1
        if self.phases is not None and len(actions) == 1:
            self.phases.update(pairs_of(state, actions[0]))

    def _judged(self, before: State, command: Command, reached: _Reached, fresh: bool) -> Divergence | None:
        """What this step of the target breaks in its own state; and what its own state breaks, where it is new."""
        if reached.own is None:
            return None
        if not fresh:
            return self.invariants.judged_step(before, command, reached.actions, reached.own)
        difference = self.invariants.judged(before, command, reached.actions, reached.own, self._asks_proofs())
        if difference is None and self._aside is not None:
            self._unasked[len(self._aside) - 1] = reached.actions
        return difference

    def _put_back(self, number: int, snapshot: Hashable) -> None:
        journal.put_back(self.machine.setting, lambda: self.path(number))
        self.target.restore(snapshot)

    def _pass_by(self, commands: tuple[Command, ...], divergence: Divergence) -> bool:
        if not self.known(divergence):
            return False
        if self.passed_by is None:
            self.passed_by = (commands, divergence)
        return True

    def _late_commands(self, state: State) -> list[Command]:
        return [Command("report", (worker, job)) for job, workers in late_reports(state).items() for worker in workers]

    def _commands(self, state: State, actions: list[Action]) -> list[Command]:
        single = [command_of(action) for action in actions]
        if not self.composites:
            return single
        batches = [
            Command("report_all", (worker,))
            for worker in range(len(state.device_contents))
            if len(reportable(state, worker)) > 1
        ]
        return [*single, Command("schedule"), *batches]

    def _own_state(self, view: View) -> State | Crashed | None:
        """The target's own state, if it can give it. view: of the target now."""
        return None if self._abstracting is None else own_state(self._abstracting, view)

    def _add(self, reached: _Reached, parent: int, command: Command | None) -> bool:
        """A node, unless it is known. True: it is new."""
        name, left = self._named(reached.state)
        return self._enter(name, _Open(-1, reached.state, reached.snapshot, reached.own, left), parent, command)

    def _named(self, state: State) -> tuple[Named, Left]:
        """The name of the pair of this state and the target's, and what is left there if the name does not say so."""
        contract, start = self.machine.setting.contract, self._start
        whole = state if start is None else unspent(start, state)
        late = {} if self._discounting is None else late_reports(state)
        if not late or self._discounting is None:
            canonical, renaming = canonical_with(contract, whole)
            name = self._nodes.named(canonical, self.target.control(renaming))
            return name, NOTHING if start is None else left_in(state)
        canonical, renaming = canonical_with(contract, without(self.machine, whole, late))
        control, known = self._discounting.control_without(renaming, late)
        return self._nodes.named(canonical, control), left_in(state, named_late(state, renaming, late, known))

    def _enter(self, name: Named, node: _Open, parent: int, command: Command | None) -> bool:
        """The same of a node whose number is not known yet."""
        entered = self._nodes.entered(name, node.left)
        if entered is Entered.KNOWN:
            return False
        self._open.append(node._replace(number=self.pairs, stood_for=entered is Entered.STOOD_FOR))
        self.stood_for += entered is Entered.STOOD_FOR
        self.pairs += 1
        self.parent.append(parent)
        self.via.append(command)
        if self._aside is not None:
            self._aside.append(name)
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
