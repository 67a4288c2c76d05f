"""Breadth-first search of a machine's states, smallest first, with every safety property judged on the way."""

import gc
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from kvmodel import ACTIONS, Action, Forbidden, Machine, State
from kvmodel import actions as act
from kvmodel.actions import UNFAIR
from kvproof.search.allowance import covers, left_in, unspent
from kvproof.search.canonical import canonical
from kvproof.search.liveness import Edges, Incoming, cannot_reach, components, cyclic_core, incoming_of
from kvproof.search.sharing import shared
from kvspecs.catalogue import JUDGED, LIVENESS, STEPPING
from kvspecs.liveness.work_remaining_keeps_the_engine_stepping import stands_still

KIND = {kind: code for code, kind in enumerate(ACTIONS)}
CODE = {kind.__name__: code for kind, code in KIND.items()}
ALIASES = 500_000
"""How many states are remembered under names that are not canonical, so that they need not be renamed again: a third of
all that are met, and memory for each of them."""

NOT_REPEATED = frozenset({KIND[act.ReleaseLookup]})
"""Fair as a way to a goal; but nobody looks up and gives up for ever."""


class Violation(NamedTuple):
    """A broken property: the path to it in canonical names (`retold` gives one naming), and what is broken.

    cycle  for a livelock: actions that repeat for ever after the path
    """

    property: str
    sentence: str
    path: list[Action]
    cycle: list[Action]


class Explored(NamedTuple):
    """What a search has seen. finished: nothing is left; otherwise it was cut short, or stopped at a violation."""

    states: int
    transitions: int
    depth: int
    finished: bool
    violation: Violation | None
    actions: dict[str, int]


SHARED_FROM = 1_000
"""States of one level from which on several processes take it: then it takes longer than to tell what was found."""


class _Ended(NamedTuple):
    """Why a search stops before all is taken: it was cut, or this is broken."""

    violation: Violation | None


class _Part(NamedTuple):
    """What another process has found in its part of a level, in which states that it has found itself are numbered from
    `known` on.

    found  the states that are new to it, each with what it would be if nothing had been used up, its parent, and the
           action that leads to it
    goals  of each goal, which of those states are in it
    """

    ended: _Ended | None
    known: int
    found: list[tuple[State, State, int, Action | None]]
    goals: list[list[int]]
    edges: Edges
    transitions: int
    taken: dict[str, int]


class Graph:
    """All reachable states of a machine up to renaming, numbered in the order of their discovery.

    allowance   a state stands for those that differ from it in having less left alone (`kvproof.search.allowance`); all
                that is fair is the same in them, so that liveness is
    processes   how many take a level together, if it is large; nothing tells afterwards how many they were
    """

    def __init__(self, machine: Machine, allowance: bool = False, processes: int = 1) -> None:
        self.machine = machine
        self.setting = machine.setting
        self.processes = processes
        self.states: list[State] = []
        self.number: dict[State, int] = {}
        """Of each canonical state, and of some that it stands for."""
        self._aliases = ALIASES
        self._start = machine.initial() if allowance else None
        self._wholes: list[State] = []
        self._alike: dict[State, list[int]] = {}
        self.parent = array("i")
        self.via: list[Action | None] = []
        self.edges = Edges(array("i"), array("i"), array("B"))
        self.goals: list[list[int]] = [[] for _ in LIVENESS]
        self.taken = dict.fromkeys((kind.__name__ for kind in ACTIONS), 0)
        self.transitions = 0
        self.depth = 0
        self._on_state = [(p.name, p.on_state) for p in JUDGED if p.on_state is not None]
        self._on_step = {
            kind: [
                (p.name, p.on_step)
                for p in JUDGED
                if p.on_step is not None and (not p.actions or kind.__name__ in p.actions)
            ]
            for kind in ACTIONS
        }

    def explore(self, cut: Callable[[], bool], progress: Callable[[str], None]) -> Explored:
        """Search everything, then judge liveness. Stops at the first violation, which is a shortest one."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            ended = self._search(cut, progress)
            violation = self._liveness(progress) if ended is None else ended.violation
        finally:
            if was_enabled:
                gc.enable()
        return Explored(len(self.states), self.transitions, self.depth, ended is None, violation, self.taken)

    def _search(self, cut: Callable[[], bool], progress: Callable[[str], None]) -> _Ended | None:
        named, whole, _ = self._found(self.machine.initial())
        violation = self._judged(self._add(named, whole, -1, None))
        if violation is not None:
            return _Ended(violation)
        level = range(1)
        while level:
            here, aside = partial(self._take, cut=cut, progress=progress), partial(self._take_aside, cut=cut)
            is_shared = self.processes > 1 and len(level) >= SHARED_FROM
            ended = shared(level, self.processes, here, aside, self._take_in) if is_shared else here(level)
            if ended is not None:
                return ended
            level = range(level.stop, len(self.states))
            self.depth += bool(level)
        return None

    def _take(self, level: Sequence[int], cut: Callable[[], bool], progress: Callable[[str], None]) -> _Ended | None:
        """Take every action of these states."""
        for number in level:
            violation = self._take_from(number)
            if violation is not None:
                return _Ended(violation)
            if not number & 1023:
                progress(f"{len(self.states):,} states")
                if cut():
                    return _Ended(None)
        return None

    def _take_from(self, number: int) -> Violation | None:
        machine, setting, known = self.machine, self.setting, self.number
        sources, targets, kinds = self.edges
        state = self.states[number]
        fair = False
        for action in machine.actions(state):
            kind = type(action)
            self.transitions += 1
            self.taken[kind.__name__] += 1
            try:
                after = machine.step(state, action)
            except Forbidden as forbidden:
                return Violation(forbidden.rule, forbidden.why, [*self.path(number), action], [])
            for name, judge in self._on_step[kind]:
                sentence = judge(setting, state, action, after)
                if sentence is not None:
                    return Violation(name, sentence, [*self.path(number), action], [])
            target = known.get(after)
            if target is None:
                named, whole, target = self._found(after)
                if target is None:
                    target = self._add(named, whole, number, action)
                    violation = self._judged(target)
                    if violation is not None:
                        return violation
                if self._aliases:
                    self._aliases -= 1
                    known.setdefault(after, target)
            if kind not in UNFAIR:
                fair = True
                sources.append(number)
                targets.append(target)
                kinds.append(KIND[kind])
        if not fair:
            stuck = stands_still(setting, state, frozenset())
            if stuck is not None:
                return Violation(STEPPING.name, stuck, self.path(number), [])
        return None

    def _take_aside(self, part: Sequence[int], cut: Callable[[], bool]) -> _Part:
        """What another process does, and tells."""
        known, taken_before = len(self.states), len(self.edges.sources)
        self.transitions, self.taken = 0, dict.fromkeys(self.taken, 0)
        ended = self._take(part, cut, lambda said: None)
        found = zip(self.states[known:], self._wholes[known:], self.parent[known:], self.via[known:], strict=True)
        goals = [[number for number in goal if number >= known] for goal in self.goals]
        edges = Edges(*(column[taken_before:] for column in self.edges))
        return _Part(ended, known, list(found), goals, edges, self.transitions, self.taken)

    def _take_in(self, part: _Part) -> _Ended | None:
        """Go on as if this process had taken the part. What is new to it was judged there."""
        self.transitions += part.transitions
        for kind, times in part.taken.items():
            self.taken[kind] += times
        first = len(self.states)
        here: list[int] = []
        for state, whole, parent, via in part.found:
            number = self._number_of(state, whole)
            here.append(self._add(state, whole, parent, via) if number is None else number)
        for goal, numbers in zip(self.goals, part.goals, strict=True):
            goal.extend([number for number in (here[number - part.known] for number in numbers) if number >= first])
        sources, targets, kinds = part.edges
        self.edges.sources.extend(sources)
        self.edges.targets.extend(
            array("i", [target if target < part.known else here[target - part.known] for target in targets])
        )
        self.edges.kinds.extend(kinds)
        return part.ended

    def _found(self, state: State) -> tuple[State, State, int | None]:
        """The canonical state; what it would be if nothing had been used up; and the number of what stands for it."""
        contract, start = self.setting.contract, self._start
        named = canonical(contract, state)
        if start is None:
            return named, named, self.number.get(named)
        whole = unspent(start, state)
        whole = named if whole is state else canonical(contract, whole)
        return named, whole, self._number_of(named, whole)

    def _number_of(self, named: State, whole: State) -> int | None:
        """The number of what stands for this canonical state."""
        if self._start is None:
            return self.number.get(named)
        left = left_in(named)
        alike = self._alike.get(whole, ())
        return next((other for other in alike if covers(left_in(self.states[other]), left)), None)

    def _add(self, state: State, whole: State, parent: int, via: Action | None) -> int:
        number = len(self.states)
        self.number[state] = number
        if self._start is not None:
            self._alike.setdefault(whole, []).append(number)
        self.states.append(state)
        self._wholes.append(whole)
        self.parent.append(parent)
        self.via.append(via)
        return number

    def _judged(self, number: int) -> Violation | None:
        """What this state breaks; and it is noted of which goals it is."""
        setting, state = self.setting, self.states[number]
        for name, judge in self._on_state:
            sentence = judge(setting, state)
            if sentence is not None:
                return Violation(name, sentence, self.path(number), [])
        for goal, live in zip(self.goals, LIVENESS, strict=True):
            if live.goal(setting, state):
                goal.append(number)
        return None

    def _liveness(self, progress: Callable[[str], None]) -> Violation | None:
        states = len(self.states)
        ways: dict[frozenset[int], Incoming] = {}
        progress(f"{states:,} states, cycles")
        cyclic = bool(cyclic_core(states, self.edges, bytearray(states), NOT_REPEATED))
        for goal, live in zip(self.goals, LIVENESS, strict=True):
            progress(f"{states:,} states, {live.name}")
            without = frozenset(CODE[name] for name in live.without)
            if without not in ways:
                ways[without] = incoming_of(states, self.edges, without)
            trapped = cannot_reach(states, self.edges, goal, without, ways[without])
            if trapped is not None:
                return Violation(live.name, "from here on the goal is out of reach", self.path(trapped), [])
            livelock = self._fair_cycle(live.name, goal, without) if cyclic else None
            if livelock is not None:
                return livelock
        return None

    def _fair_cycle(self, name: str, goals: list[int], without: frozenset[int]) -> Violation | None:
        """A component outside the goal in which all that stays possible is done, and still nothing is reached."""
        goal = bytearray(len(self.states))
        for number in goals:
            goal[number] = 1
        core = cyclic_core(len(self.states), self.edges, goal, NOT_REPEATED)
        if not core:
            return None
        for component in components(core, self.edges, NOT_REPEATED):
            members = set(component)
            possible: set[tuple[object, ...]] | None = None
            done: set[tuple[object, ...]] = set()
            steps: list[Action] = []
            for number in component:
                here: set[tuple[object, ...]] = set()
                for action in self.machine.actions(self.states[number]):
                    if type(action) in UNFAIR or KIND[type(action)] in NOT_REPEATED | without:
                        continue
                    label = _label(action)
                    here.add(label)
                    if self._found(self.machine.step(self.states[number], action))[-1] in members:
                        done.add(label)
                        steps.append(action)
                possible = here if possible is None else possible & here
            if possible is not None and possible <= done:
                sentence = (
                    f"{len(component)} states are visited for ever although everything that stays possible is done"
                )
                return Violation(name, sentence, self.path(min(component)), steps[:8])
        return None

    def path(self, number: int) -> list[Action]:
        """A shortest path from the initial state, in canonical names."""
        path: list[Action] = []
        while number > 0:
            action = self.via[number]
            assert action is not None
            path.append(action)
            number = self.parent[number]
        path.reverse()
        return path


def _label(action: Action) -> tuple[object, ...]:
    """What makes two occurrences the same action for fairness: whose it is, not the names of its jobs."""
    if isinstance(action, act.Report):
        return ("Report", action.worker)
    if isinstance(action, act.ReportMark):
        return ("ReportMark", action.worker, action.stream)
    if isinstance(action, act.Expire):
        return ("Expire",)
    return act.key(action)
