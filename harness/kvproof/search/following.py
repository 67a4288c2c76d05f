"""What a run takes of the machine: which actions, in which phases and modes, and which of them straight after which.

Every engine that goes through the machine asks it to step, so that is where it is followed; it costs about as much as
the step itself, and is for `kvproof coverage` alone.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from kvmodel import ACTIONS, Action, Machine, State
from kvmodel.setting import Setting
from kvproof.report.coverage import ACTION, MODE, PHASE, THEN
from kvproof.search.canonical import canonical
from kvproof.search.modes import MODES, switched_on
from kvproof.search.phases import Label, pairs_of, worded

STEP = Machine.step.__name__
NAMES = tuple(kind.__name__ for kind in ACTIONS)
BIT = {kind: 1 << position for position, kind in enumerate(ACTIONS)}


class Followed:
    """Steps of all machines of one run.

    Two actions are consecutive where one leads into a state, up to names, and the other leads out of it: of an
    exhaustive search those are all pairs that can occur, whichever way it came to the state first.
    """

    def __init__(self) -> None:
        self.actions: Counter[str] = Counter()
        self.phases: Counter[Label] = Counter()
        self.modes: Counter[str] = Counter()
        self._into: dict[tuple[Setting, State], int] = {}
        self._out_of: dict[tuple[Setting, State], int] = {}
        self._modes: dict[Setting, tuple[str, ...]] = {}

    def step(self, setting: Setting, before: State, action: Action, after: State) -> None:
        """One step was taken."""
        contract, bit = setting.contract, BIT[type(action)]
        self.actions[type(action).__name__] += 1
        self.phases.update(pairs_of(before, action))
        if setting not in self._modes:
            self._modes[setting] = switched_on(contract, setting.scope)
        self.modes.update(self._modes[setting])
        left, entered = (setting, canonical(contract, before)), (setting, canonical(contract, after))
        self._out_of[left] = self._out_of.get(left, 0) | bit
        self._into[entered] = self._into.get(entered, 0) | bit

    def counts(self) -> dict[str, int]:
        """By the names of `kvproof.report.coverage`. Of consecutive actions: in how many states they meet."""
        consecutive: Counter[str] = Counter()
        for state, out in self._out_of.items():
            into = self._into.get(state, 0)
            for first in _names(into):
                consecutive.update([f"{THEN}{first} > {second}" for second in _names(out)])
        return {
            **{f"{ACTION}{name}": self.actions[name] for name in NAMES},
            **{f"{PHASE}{worded(label)}": count for label, count in self.phases.items()},
            **{f"{MODE}{name}": self.modes[name] for name in MODES},
            **consecutive,
        }


def _names(bits: int) -> list[str]:
    return [name for position, name in enumerate(NAMES) if bits >> position & 1]


@contextmanager
def following() -> Iterator[Followed]:
    """Follow every machine of this process while the context lasts."""
    followed, plain = Followed(), Machine.step

    def step(machine: Machine, state: State, action: Action) -> State:
        after = plain(machine, state, action)
        followed.step(machine.setting, state, action, after)
        return after

    setattr(Machine, STEP, step)
    try:
        yield followed
    finally:
        setattr(Machine, STEP, plain)
