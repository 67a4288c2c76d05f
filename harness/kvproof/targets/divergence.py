"""A divergence: a command of the target that cannot be accounted for."""

from typing import NamedTuple

from kvmodel import Action, State


class Divergence(NamedTuple):
    """A command that cannot be accounted for.

    property  that is broken; sentence: what happened, in the field's words
    contract_lines, target_lines  pairwise, what differs
    rule      the action whose rule decides it
    cause     stable words that make two divergences the same
    contract_state, target_state  the machine's state where they part, and the same with what is seen of the target
              in its place; None where nothing was compared, as after a crash
    """

    property: str
    sentence: str
    contract_lines: tuple[str, ...]
    target_lines: tuple[str, ...]
    rule: type[Action] | None
    cause: tuple[str, ...]
    contract_state: State | None = None
    target_state: State | None = None
