"""Shrinking: changes are tried until none makes the plan smaller, then everything shorter is looked at."""

from collections.abc import Callable
from typing import NamedTuple, cast

from kvmodel import Contract, Machine
from kvmodel.errors import BadScope
from kvmodel.scope import Scope, validated
from kvproof.child import survived
from kvproof.failure import Minimal
from kvproof.search.product import Product, Searchable, Searched
from kvproof.shrinking.attempt import Attempt, OpenAt, Plan, attempted, performed
from kvproof.shrinking.changes import CHANGES, Change, rank
from kvproof.targets.divergence import Divergence
from kvproof.targets.guarded import started
from kvproof.targets.outcome import Crashed
from kvproof.targets.target import Offering, Snapshotting

EDGES = 12_000
"""Commands that the search for something shorter takes at most (count), so that it ends after seconds."""


class Smallest(NamedTuple):
    """The smallest that was found. minimal: `shortest` where every shorter sequence at its scope was looked at."""

    attempt: Attempt
    minimal: Minimal


class Shrinking:
    """One violation, and the smallest plan so far that leads to it.

    wanted  what it is: another property, or another cause, is another violation
    cut     whether to stop with what there is; told hears how far it is, in a few words
    """

    def __init__(
        self,
        contract: Contract,
        open_at: OpenAt,
        found: Attempt,
        cut: Callable[[], bool],
        told: Callable[[str], None] = lambda words: None,
    ) -> None:
        assert found.run.divergence is not None
        self.contract = contract
        self.open_at = open_at
        self.best = found
        self.found = found.plan.scope
        self.wanted = same(found.run.divergence)
        self.cut = cut
        self.told = told
        self.tried: set[Plan] = set()

    def smallest(self) -> Smallest:
        """Try every change, and what a search finds, until nothing makes it smaller, or until `cut`."""
        while True:
            before = self.best
            for change in CHANGES:
                while self._tries(change):
                    pass
            if self.best is before:
                self._searched(self._roomier())
            if self.best is before:
                minimal = self._searched(self.best.plan.scope)
                if self.best is before or self.cut():
                    return Smallest(self.best, minimal)
            if self.cut():
                return Smallest(self.best, "shrunk")

    def _roomier(self) -> Scope:
        """The scope of the best plan, with what clients could do where the violation was found: a shorter way may need
        an abort that the way so far does not."""
        return self.best.plan.scope._replace(
            aborts=self.found.aborts,
            preempts=self.found.preempts,
            resets=max(self.best.plan.scope.resets, min(self.found.resets, 1)),
        )

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
        try:
            validated(plan.scope)
        except BadScope:
            return False
        self.told(f"{len(self.best.plan.commands):,} commands left, {len(self.tried):,} runs")
        attempt = survived(lambda: attempted(self.contract, self.open_at, plan, self.cut))
        divergence = None if attempt is None else attempt.run.divergence
        if (
            attempt is None
            or divergence is None
            or same(divergence) != self.wanted
            or not size(attempt.plan) < size(self.best.plan)
        ):
            return False
        self.best = attempt
        return True

    def _searched(self, scope: Scope) -> Minimal:
        """Look at every shorter sequence at a scope, if the target's state can be copied out, and at EDGES commands at
        most."""
        length = len(self.best.plan.commands)
        searched = survived(lambda: self._search(scope, length))
        if searched is None:
            return "shrunk"
        found, complete = searched
        if found.divergence is not None and same(found.divergence) == self.wanted:
            complete = len(found.commands) >= length
            if not complete:
                again = survived(lambda: performed(self.contract, self.open_at, scope, found.commands, self.cut))
                if again is not None:
                    self._takes(again.plan)
        return "shortest" if complete else "shrunk"

    def _search(self, scope: Scope, length: int) -> tuple[Searched, bool] | None:
        """What was found, and whether everything shorter than `length` was looked at. None: it cannot be searched."""
        machine = Machine(self.contract, scope)
        target = started(self.open_at(machine))
        if isinstance(target, Crashed):
            return None
        try:
            if not (isinstance(target, Snapshotting) and isinstance(target, Offering)):
                return None
            product = Product(machine, cast(Searchable, target), True, lambda found: same(found) != self.wanted)

            def enough() -> bool:
                return self.cut() or product.edges > EDGES or product.depth >= length

            found = product.search(enough, lambda words: self.told(f"looking for fewer than {length}: {words}"))
            return found, found.finished or (product.depth >= length and not self.cut())
        finally:
            target.close()


def same(divergence: Divergence) -> tuple[str, tuple[str, ...]]:
    """What two divergences have in common that are one violation."""
    return divergence.property, divergence.cause


def size(plan: Plan) -> tuple[int, int, tuple[object, ...]]:
    """What is made smaller: first the number of commands, then the scope, then how late completions come."""
    return len(plan.commands), weight(plan.scope), tuple(map(rank, plan.commands))


def weight(scope: Scope) -> int:
    """How much there is in a scope: blocks, workers, requests and symbols, and whatever may happen (count)."""
    symbols = sum(map(len, (*scope.prompts, *scope.decoded)))
    total = len(scope.prompts) + symbols + len(scope.meanings) + len(scope.tiers)
    return total + sum(value for value in scope if isinstance(value, int))
