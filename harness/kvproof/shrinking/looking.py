"""Looking for something shorter: every sequence of commands that is, as far as can be looked in some seconds."""

from collections.abc import Callable
from typing import NamedTuple, cast

from kvmodel import Contract, Machine
from kvmodel.scope import Scope
from kvproof.obligations.search import Digesting, Searching
from kvproof.search.product import Product, Searchable
from kvproof.shrinking.attempt import OpenAt
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.guarded import started
from kvproof.targets.outcome import Crashed
from kvproof.targets.target import Offering, Snapshotting

EDGES = 12_000
"""Commands that the product search takes at most (count), so that it ends after seconds."""

COMMANDS = 30_000
"""Commands that are given to watched targets at most, those of drains one by one (count)."""


class Looked(NamedTuple):
    """What was seen. commands: the shortest that lead to the violation, or none; complete: whether everything shorter
    than what there was before has been looked at."""

    commands: tuple[Command, ...]
    complete: bool


class Where(NamedTuple):
    """Where to look: in these modes, at this scope, for something shorter than `length`.

    is_wanted  whether a divergence is the violation; others are gone on past
    effort     how much of what is looked at at most; 1: all of it
    """

    contract: Contract
    scope: Scope
    length: int
    is_wanted: Callable[[Divergence], bool]
    effort: float = 1


def in_the_product(
    open_at: OpenAt, where: Where, cut: Callable[[], bool], told: Callable[[str], None]
) -> Looked | None:
    """Beside the machine. None: the target's state cannot be copied out."""
    machine = Machine(where.contract, where.scope)
    target = started(open_at(machine))
    if isinstance(target, Crashed):
        return None
    try:
        if not (isinstance(target, Snapshotting) and isinstance(target, Offering)):
            return None
        product = Product(machine, cast(Searchable, target), True, lambda found: not where.is_wanted(found))

        def enough() -> bool:
            return cut() or product.edges > where.effort * EDGES or product.depth >= where.length

        found = product.search(enough, told)
    finally:
        target.close()
    if found.divergence is not None and where.is_wanted(found.divergence):
        shorter = len(found.commands) < where.length
        return Looked(found.commands if shorter else (), not shorter)
    return Looked((), found.finished or (product.depth >= where.length and not cut()))


def in_sequences(open_at: OpenAt, where: Where, cut: Callable[[], bool], told: Callable[[str], None]) -> Looked | None:
    """Each sequence given to a fresh engine. None: the target cannot tell its states apart."""
    open_target = open_at(Machine(where.contract, where.scope))
    target = started(open_target)
    if isinstance(target, Crashed):
        return None
    target.close()
    if not isinstance(target, Digesting):
        return None
    searching = Searching(open_target, lambda found: "" if where.is_wanted(found) else "another")
    found = searching.run(where.length - 1, lambda: cut() or searching.performed > where.effort * COMMANDS, told)
    return Looked(found.commands, found.divergence is None and found.length == where.length - 1)
