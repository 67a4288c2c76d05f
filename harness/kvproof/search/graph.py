"""Breadth-first search of a machine's states, smallest first, with every safety property judged on the way."""

import gc
from array import array
from collections.abc import Callable
from typing import NamedTuple

from kvmodel import ACTIONS, Action, Forbidden, Machine, State
from kvmodel import actions as act
from kvmodel.actions import UNFAIR
from kvproof.search.allowance import covers, left_in, unspent
from kvproof.search.canonical import canonical
from kvproof.search.liveness import Edges, Incoming, cannot_reach, components, cyclic_core, incoming_of
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


class Graph:
    """All reachable states of a machine up to renaming, numbered in the order of their discovery.

    allowance   a state stands for those that differ from it in having less left alone (`kvproof.search.allowance`); all
                that is fair is the same in them, so that liveness is
    """

    def __init__(self, machine: Machine, allowance: bool = False) -> None:
        self.machine = machine
        self.setting = machine.setting
        self.states: list[State] = []
        self.number: dict[State, int] = {}
        """Of each canonical state, and of some that it stands for."""
        self._start = machine.initial() if allowance else None
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
            violation, finished = self._search(cut, progress)
            if violation is None and finished:
                violation = self._liveness(progress)
        finally:
            if was_enabled:
                gc.enable()
        return Explored(len(self.states), self.transitions, self.depth, finished, violation, self.taken)

    def _search(self, cut: Callable[[], bool], progress: Callable[[str], None]) -> tuple[Violation | None, bool]:
        machine = self.machine
        named, whole, _ = self._found(machine.initial())
        broken = self._add(named, whole, -1, None)
        if broken is not None:
            return broken, False
        frontier = [0]
        aliases = ALIASES
        while frontier:
            discovered: list[int] = []
            for number in frontier:
                state = self.states[number]
                offered = machine.actions(state)
                fair = False
                for action in offered:
                    kind = type(action)
                    self.transitions += 1
                    self.taken[kind.__name__] += 1
                    try:
                        after = machine.step(state, action)
                    except Forbidden as forbidden:
                        return Violation(forbidden.rule, forbidden.why, [*self.path(number), action], []), False
                    for name, judge in self._on_step[kind]:
                        sentence = judge(self.setting, state, action, after)
                        if sentence is not None:
                            return Violation(name, sentence, [*self.path(number), action], []), False
                    target = self.number.get(after)
                    if target is None:
                        named, whole, target = self._found(after)
                        if target is None:
                            target = len(self.states)
                            broken = self._add(named, whole, number, action)
                            if broken is not None:
                                return broken, False
                            discovered.append(target)
                        if aliases:
                            aliases -= 1
                            self.number.setdefault(after, target)
                    if kind not in UNFAIR:
                        fair = True
                        self.edges.sources.append(number)
                        self.edges.targets.append(target)
                        self.edges.kinds.append(KIND[kind])
                if not fair:
                    stuck = stands_still(self.setting, state, frozenset())
                    if stuck is not None:
                        return Violation(STEPPING.name, stuck, self.path(number), []), False
                if not number & 1023:
                    progress(f"{len(self.states):,} states")
                    if cut():
                        return None, False
            frontier = discovered
            self.depth += bool(discovered)
        return None, True

    def _found(self, state: State) -> tuple[State, State, int | None]:
        """The canonical state; what it would be if nothing had been used up; and the number of what stands for it."""
        contract, start = self.setting.contract, self._start
        named = canonical(contract, state)
        if start is None:
            return named, named, self.number.get(named)
        whole = unspent(start, state)
        whole = named if whole is state else canonical(contract, whole)
        left = left_in(state)
        alike = self._alike.get(whole, ())
        return named, whole, next((other for other in alike if covers(left_in(self.states[other]), left)), None)

    def _add(self, state: State, whole: State, parent: int, via: Action | None) -> Violation | None:
        number = len(self.states)
        self.number[state] = number
        if self._start is not None:
            self._alike.setdefault(whole, []).append(number)
        self.states.append(state)
        self.parent.append(parent)
        self.via.append(via)
        setting = self.setting
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
