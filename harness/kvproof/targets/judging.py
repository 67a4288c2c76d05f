"""A target judged where no command is: when it was opened, and by what its scheduler would do next."""

from kvmodel import Action, Machine, State
from kvproof.targets import decisions
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import compared, crashed
from kvproof.targets.guarded import offered, seen
from kvproof.targets.outcome import MALFORMED, Crashed
from kvproof.targets.target import Offering, Target
from kvproof.targets.view import offers_of
from kvproof.targets.wellformed import oddity_of_offers


def at_start(machine: Machine, target: Target) -> Divergence | None:
    """What differs before the first command."""
    view = seen(target)
    if isinstance(view, Crashed):
        return crashed(None, view)
    state = machine.initial()
    difference = compared(machine, state, None, None, state, view, target.exact)
    return difference or differing_offers(machine, state, target, None)


def differing_offers(
    machine: Machine, state: State, target: Target, command: Command | None, possible: list[Action] | None = None
) -> Divergence | None:
    """What the target's scheduler would decide otherwise than the machine's, after this command. Only of an exact
    target that says so; another one may decide as it likes.

    possible  what the machine can do in this state, from whoever has asked it
    """
    if not target.exact or not isinstance(target, Offering):
        return None
    expected = offers_of(machine.actions(state) if possible is None else possible)
    return between(machine, state, command, expected, offered(target))


def between(
    machine: Machine,
    state: State,
    command: Command | None,
    expected: frozenset[tuple[object, ...]],
    offers: frozenset[tuple[object, ...]] | Crashed,
) -> Divergence | None:
    """The difference between what the machine's scheduler would do next and what the target says of its own."""
    if isinstance(offers, Crashed):
        return crashed(command, offers)
    if expected == offers:
        return None
    odd = oddity_of_offers(machine.setting, offers)
    return crashed(command, Crashed(MALFORMED, odd)) if odd else decisions.offers(machine, state, expected, offers)
