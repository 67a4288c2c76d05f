"""A target judged where no command is: when it was opened, and by what its scheduler would do next."""

from kvmodel import Machine, State
from kvproof.targets import naming
from kvproof.targets.command import Command
from kvproof.targets.explain import compared, crashed
from kvproof.targets.guarded import offered, seen
from kvproof.targets.naming import Divergence
from kvproof.targets.outcome import Crashed
from kvproof.targets.target import Offering, Target
from kvproof.targets.view import offers_in


def at_start(machine: Machine, target: Target) -> Divergence | None:
    """What differs before the first command."""
    view = seen(target)
    if isinstance(view, Crashed):
        return crashed(None, view)
    state = machine.initial()
    difference = compared(machine, state, None, None, state, view, target.exact)
    return difference or differing_offers(machine, state, target, None)


def differing_offers(machine: Machine, state: State, target: Target, command: Command | None) -> Divergence | None:
    """What the target's scheduler would decide otherwise than the machine's, after this command. Only of an exact
    target that says so; another one may decide as it likes."""
    if not target.exact or not isinstance(target, Offering):
        return None
    offers = offered(target)
    if isinstance(offers, Crashed):
        return crashed(command, offers)
    expected = offers_in(machine, state)
    return None if expected == offers else naming.offers(machine, state, expected, offers)
