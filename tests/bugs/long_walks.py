"""Long failing traces, made small: a random walk of some 500 commands that ends in a planted bug, and what shrinking
leaves of it.

shrunk(bug, seed)    plants the bug, starts an interpreter that has it, and answers what came of it
answered(...)        is what that interpreter does
"""

import random
import time
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, cast

from kvmodel import Machine, State
from kvmodel.contract import Discipline
from kvproof.lockstep import KIND_OF, KINDS
from kvproof.search.modes import Variant
from kvproof.search.product import Product
from kvproof.shrinking.attempt import performed
from kvproof.shrinking.smallest import Shrinking, same
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import explain
from kvproof.targets.guarded import own_state, seen
from kvproof.targets.guarded import performed as given
from kvproof.targets.invariants import Invariants
from kvproof.targets.judging import differing_offers
from kvproof.targets.registry import load
from kvproof.targets.target import opened
from kvproof.targets.view import View
from kvproof.targets.wording import command_of
from tests.bugs.bug import Bug, variant_of
from tests.bugs.interpreter import answer_of, require_planted

PREFIX = 490
"""Commands that go well, and in which nobody ends: it would soon be over."""

TAIL = range(10, 60)
"""How many more it takes to the violation."""

TRIES = 3_000
LIMIT = 120.0
Saved = tuple[State, Any, Hashable]

ENDINGS = frozenset({"finish", "abort", "stop"})


class Shrunk(NamedTuple):
    """What came of one walk.

    walked, left, shortest  commands of the walk, of what shrinking leaves, and of the shortest way to the same
                            violation at the bug's own variant, by the product search (counts)
    same       whether the three are one violation; twice: whether shrinking it again changes nothing
    seconds    of processor time that the first shrinking took
    """

    walked: int
    left: int
    shortest: int
    same: bool
    twice: bool
    seconds: float


def shrunk(bug: Bug, seed: int) -> Shrunk:
    """Walk into a bug and shrink the walk."""
    call = f"answered({bug.discipline!r}, {bug.variant!r}, {seed})"
    return Shrunk(*answer_of(bug, "tests.bugs.long_walks", call, LIMIT))


def roomier(variant: Variant) -> Variant:
    """The variant with more requests, blocks and resets, so that there is something to walk through for long."""
    scope = variant.scope._replace(
        prompts=("ab", "ac", "ab"),
        resets=1_000,
        device_blocks=variant.scope.device_blocks + 1,
        host_blocks=variant.scope.host_blocks + 1,
    )
    return variant._replace(scope=scope)


class Walking:
    """A random walk beside the machine, which can be put back to where it was."""

    def __init__(self, variant: Variant, seed: int) -> None:
        self.machine = Machine(variant.contract, variant.scope)
        self.target: Any = opened(load("kvoffload", "ledger"), self.machine.setting)
        self.invariants = Invariants(self.machine.setting)
        self.drawn = random.Random(seed)
        self.state = self.machine.initial()
        self.own: Any = own_state(self.target, cast(View, seen(self.target)))

    def save(self) -> Saved:
        return self.state, self.own, self.target.save()

    def restore(self, saved: Saved) -> None:
        self.state, self.own, snapshot = saved
        self.target.restore(snapshot)

    def step(self, ending: bool) -> tuple[Command, Divergence | None]:
        """One command, and what is wrong after it. ending: requests may end."""
        command = self._drawn(ending)
        outcome, view = given(self.target, command)
        explained = explain(self.machine, self.state, command, outcome, view, True)
        if isinstance(explained, Divergence):
            return command, explained
        before, self.own = self.own, own_state(self.target, view)
        self.state = explained.state
        wrong = self.invariants.judged(before, command, explained.actions, self.own)
        return command, wrong or differing_offers(self.machine, self.state, self.target, command)

    def _drawn(self, ending: bool) -> Command:
        while True:
            kinds: dict[str, list[Command]] = {}
            for command in self._enabled():
                if ending or command.verb not in ENDINGS:
                    kinds.setdefault(KIND_OF[command.verb], []).append(command)
            if kinds:
                kind = self.drawn.choice([kind for kind in kinds for _ in range(KINDS[kind][0])])
                return self.drawn.choice(kinds[kind])

    def _enabled(self) -> Iterator[Command]:
        yield from map(command_of, self.machine.actions(self.state))
        if self.drawn.random() < 0.3:
            yield Command("schedule")


def walked(variant: Variant, seed: int, wanted: tuple[str, tuple[str, ...]]) -> list[Command]:
    """Commands of which the last one breaks what is wanted, and no other anything."""
    walking = Walking(variant, seed)
    commands: list[Command] = []
    while len(commands) < PREFIX:
        saved = walking.save()
        command, wrong = walking.step(ending=False)
        if wrong is None:
            commands.append(command)
        else:
            walking.restore(saved)
    saved = walking.save()
    for _ in range(TRIES):
        walking.restore(saved)
        tail: list[Command] = []
        wrong = None
        while wrong is None and len(tail) < TAIL.stop:
            command, wrong = walking.step(ending=True)
            tail.append(command)
        if wrong is not None and same(wrong) == wanted and len(tail) in TAIL:
            return commands + tail
    raise RuntimeError(f"no walk with seed {seed} leads to {wanted} within {TRIES} tries")


def answered(discipline: Discipline, name: str, seed: int) -> Shrunk:
    """In the interpreter that has the bug."""
    require_planted()
    variant = variant_of(name, discipline)
    target_class = load("kvoffload", "ledger")
    machine = Machine(variant.contract, variant.scope)
    target: Any = opened(target_class, machine.setting)
    found = Product(machine, target, composites=True).search(lambda: False, lambda _: None)
    assert found.divergence is not None
    wanted = same(found.divergence)
    wide = roomier(variant)
    commands = walked(wide, seed, wanted)

    def open_at(machine: Machine):
        return lambda: opened(target_class, machine.setting)

    whole = performed(wide.contract, open_at, wide.scope, commands, lambda: False)
    began = time.process_time()
    small = Shrinking(open_at, whole, lambda: False).smallest().attempt
    seconds = time.process_time() - began
    again = Shrinking(open_at, small, lambda: False).smallest().attempt
    violations = {same(run.divergence) for run in (whole.run, small.run) if run.divergence is not None}
    return Shrunk(
        whole.run.done, len(small.plan.commands), len(found.commands), violations == {wanted}, again.plan == small.plan,
        round(seconds, 2),
    )  # fmt: skip
