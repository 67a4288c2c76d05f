"""One run of commands on a watched target."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kvproof.obligations.judge import Judged
from kvproof.obligations.watched import Breakable, Watched
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.outcome import Crashed, Outcome, Refused


def is_watched(target: object) -> bool:
    """Whether a target, or its class, is held to its obligations rather than to the machine."""
    return bool(getattr(target, "watched", False))


class Run(NamedTuple):
    """What came of it: commands performed, what each did, and at the last of them what it broke."""

    done: int
    notes: tuple[str, ...]
    divergence: Divergence | None


NOT_POSSIBLE = "not possible here"
"""The note of a command that was left out: an engine of another release may have got somewhere else by then."""


def run_of_watched(target: Watched, commands: Sequence[Command], cut: Callable[[], bool]) -> Run:
    """Give the commands to a fresh target until one breaks something. What nobody could give to it then is left out."""
    judged, notes = Judged(target), list[str]()
    for position, command in enumerate(commands):
        if cut():
            return Run(position, tuple(notes), None)
        if command.verb != "drain" and command not in _possible(target):
            notes.append(NOT_POSSIBLE)
            continue
        outcome, found = judged.perform(command)
        notes.append(_note(outcome))
        if found is not None:
            return Run(position + 1, tuple(notes), found)
    return Run(len(commands), tuple(notes), None)


def _possible(target: Watched) -> list[Command]:
    return [*target.enabled(), *(target.faults() if isinstance(target, Breakable) else [])]


def _note(outcome: Outcome) -> str:
    """What a command did, in a few words."""
    if isinstance(outcome, Refused):
        return f"refused: {outcome.reason}"
    if isinstance(outcome, Crashed):
        return ""
    return f"answered {outcome.value}" if isinstance(outcome.value, bool) else str(outcome.value or "")
