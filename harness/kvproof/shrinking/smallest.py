"""Shrinking: changes are tried until none makes the plan smaller, then everything shorter is looked at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvmodel import Contract, Machine
from kvmodel.errors import BadScope
from kvmodel.scope import Scope
from kvproof.child import survived
from kvproof.failure import Minimal
from kvproof.shrinking import attempt, watched
from kvproof.shrinking.attempt import Attempt, OpenAt, Plan
from kvproof.shrinking.changes import CHANGES, Change, plainest, rank
from kvproof.shrinking.looking import Looked, Where, in_sequences, in_the_product
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence


@dataclass(frozen=True)
class Manner:
    """How a kind of target is given commands.

    performed  just these commands; attempted: a plan, with what of it still makes sense
    look       at everything shorter
    """

    performed: Callable[[Contract, OpenAt, Scope, Sequence[Command], Callable[[], bool]], Attempt]
    attempted: Callable[[OpenAt, Plan, Callable[[], bool]], Attempt]
    look: Callable[[OpenAt, Where, Callable[[], bool], Callable[[str], None]], Looked | None]


FOLLOWED = Manner(attempt.performed, attempt.attempted, in_the_product)
"""Beside the machine."""

WATCHED = Manner(watched.performed, watched.attempted, in_sequences)
"""Held to its obligations, and to no machine."""


ELSEWHERE = 0.25
"""How far it is looked where the violation was not seen, beside where it was."""


class Smallest(NamedTuple):
    """The smallest that was found. minimal: `shortest` where every shorter sequence at its scope was looked at."""

    attempt: Attempt
    minimal: Minimal


class Shrinking:
    """One violation, and the smallest plan so far that leads to it.

    wanted  what it is: another property, or another cause, is another violation
    cut     whether to stop with what there is; told hears how far it is, in a few words
    has_other_modes  whether it may be the engine's in plainer modes too, rather than only in those where it was found
    """

    def __init__(
        self,
        open_at: OpenAt,
        found: Attempt,
        cut: Callable[[], bool],
        told: Callable[[str], None] = lambda words: None,
        manner: Manner = FOLLOWED,
        has_other_modes: bool = True,
    ) -> None:
        assert found.run.divergence is not None
        self.open_at = open_at
        self.best = found
        self.found = found.plan
        self.wanted = same(found.run.divergence)
        self.cut = cut
        self.told = told
        self.manner = manner
        self.has_other_modes = has_other_modes
        self.tried: set[Plan] = set()
        self.looked: dict[tuple[Contract, Scope], Minimal] = {}

    def smallest(self) -> Smallest:
        """Try every change, and what a search finds, until nothing makes it smaller, or until `cut`."""
        while True:
            before = self.best
            for change in CHANGES:
                while self._tries(change):
                    pass
            for elsewhere in self._elsewhere():
                if self.best is before:
                    self._looks(*elsewhere)
            if self.best is before:
                minimal = self._looks(self.best.plan.contract, self.best.plan.scope)
                if self.best is before or self.cut():
                    return Smallest(self.best, minimal)
            if self.cut():
                return Smallest(self.best, "shrunk")

    def _elsewhere(self) -> Iterator[tuple[Contract, Scope, float]]:
        """Where else to look, and with how much effort, in the plainest modes and in those of the best plan: with fewer
        requests, each as long as where the violation was found, but for what is beyond two symbols, and every reset
        that there was; and with what clients could do there. A shorter way may need a second block in the place of a
        second request, or an abort."""
        best, found = self.best.plan, self.found.scope
        roomier = best.scope._replace(
            aborts=found.aborts, preempts=found.preempts, resets=max(best.scope.resets, min(found.resets, 1))
        )
        longer = roomier._replace(
            device_blocks=found.device_blocks,
            host_blocks=found.host_blocks,
            decode=min(found.decode, 1),
            decoded=(),
            meanings=found.meanings,
            survivors=found.survivors,
            tiers=found.tiers,
        )
        prompts = tuple([prompt[:2] for prompt in found.prompts])
        fewer = [longer._replace(prompts=prompts[:number]) for number in range(1, len(best.scope.prompts))]
        for contract in dict.fromkeys([plainest(best.contract), best.contract]):
            for scope in [*fewer, roomier]:
                if self._there_is(contract, scope):
                    yield contract, scope, 1 if (contract, scope) == (best.contract, roomier) else ELSEWHERE

    def _tries(self, change: Change) -> bool:
        """Whether one of the change's plans was taken."""
        before = self.best
        plans = change(self.best.plan)
        plan = next(plans, None)
        while plan is not None and not self.cut():
            taken = self._takes(plan)
            try:
                plan = plans.send(self.best.plan if taken else None)
            except StopIteration:
                break
        return self.best is not before and not self.cut()

    def _takes(self, plan: Plan) -> bool:
        if plan in self.tried:
            return False
        self.tried.add(plan)
        if not self._there_is(plan.contract, plan.scope):
            return False
        self.told(f"{len(self.best.plan.commands):,} commands left, {len(self.tried):,} runs")
        tried = survived(lambda: self.manner.attempted(self.open_at, plan, self.cut))
        divergence = None if tried is None else tried.run.divergence
        if (
            tried is None
            or divergence is None
            or same(divergence) != self.wanted
            or not size(tried.plan) < size(self.best.plan)
        ):
            return False
        self.best = tried
        return True

    def _there_is(self, contract: Contract, scope: Scope) -> bool:
        """Whether the engine has these modes, and they and the scope do not exclude each other."""
        if contract != self.found.contract and not self.has_other_modes:
            return False
        try:
            Machine(contract, scope)
        except BadScope:
            return False
        return True

    def _looks(self, contract: Contract, scope: Scope, effort: float = 1) -> Minimal:
        """Look at every shorter sequence in these modes at a scope, as far as that can be done in some seconds. Where
        nothing was seen before, there is nothing now that what is looked for is shorter."""
        seen = self.looked.get((contract, scope))
        if seen == "shortest" or (seen is not None and effort < 1):
            return seen
        length = len(self.best.plan.commands)
        where = Where(contract, scope, length, lambda found: same(found) == self.wanted, effort)
        looked = survived(
            lambda: self.manner.look(
                self.open_at, where, self.cut, lambda words: self.told(f"looking for fewer than {length}: {words}")
            )
        )
        if looked is not None and looked.commands:
            again = survived(lambda: self.manner.performed(contract, self.open_at, scope, looked.commands, self.cut))
            if again is not None:
                self._takes(again.plan)
            return "shrunk"
        minimal: Minimal = "shortest" if looked is not None and looked.complete else "shrunk"
        self.looked[contract, scope] = minimal
        return minimal


def same(divergence: Divergence) -> tuple[str, tuple[str, ...]]:
    """What two divergences have in common that are one violation."""
    return divergence.property, divergence.cause


def size(plan: Plan) -> tuple[int, int, int, tuple[object, ...]]:
    """What is made smaller: first the number of commands, then the modes that are on, then the scope, then how late
    completions come."""
    on = sum(mode != plain for mode, plain in zip(plan.contract, plainest(plan.contract), strict=True))
    return len(plan.commands), on, weight(plan.scope), tuple(map(rank, plan.commands))


def weight(scope: Scope) -> int:
    """How much there is in a scope: blocks, workers, requests and symbols, and whatever may happen (count)."""
    symbols = sum(map(len, (*scope.prompts, *scope.decoded)))
    total = len(scope.prompts) + symbols + len(scope.meanings) + len(scope.tiers)
    return total + sum(value for value in scope if isinstance(value, int))
