"""A divergence: a command of the target that cannot be accounted for."""

from typing import NamedTuple

from kvmodel import Action


class Divergence(NamedTuple):
    """A command that cannot be accounted for.

    property  that is broken; sentence: what happened, in the field's words
    contract_lines, target_lines  pairwise, what differs
    rule      the action whose rule decides it
    cause     stable words that make two divergences the same
    """

    property: str
    sentence: str
    contract_lines: tuple[str, ...]
    target_lines: tuple[str, ...]
    rule: type[Action] | None
    cause: tuple[str, ...]
