"""A watched target: an engine that is held to its obligations, and not taken through the machine."""

from collections.abc import Iterable
from typing import Literal, Protocol, runtime_checkable

from kvproof.obligations.books import Books
from kvproof.obligations.workers import Workers
from kvproof.targets.command import Command
from kvproof.targets.outcome import Outcome

Reading = Literal["lenient", "strict"]
READINGS: tuple[Reading, ...] = ("lenient", "strict")
"""How a reset is read that answered False. `lenient`: it promises nothing. `strict`: nothing from before it is hit or
published any more, and only the requests that were running go on with what they have."""


class Watched(Protocol):
    """What such an adapter provides, beside the methods of `kvproof.targets.target.StepTarget` for its verbs.

    watched  always True: by this it is known
    reading  how this engine's False is read, unless the user says otherwise; `lenient` where it is not declared
    workers  the simulated workers, to which the adapter submits whatever the engine launches
    """

    watched: bool
    workers: Workers
    copies_own_blocks: bool
    """Whether the engine promises that a copy's blocks have an owner until it is reported (pinning), rather than that
    whoever reuses them waits for the copy (fencing)."""

    def enabled(self) -> list[Command]:
        """What a client or the environment may do now, in a stable order. `drain` is always possible, and not
        listed."""
        ...

    def perform(self, command: Command) -> Outcome:
        """Carry out one of them. The value of the Answer is the engine's answer to a reset, else a few words that say
        what it did."""
        ...

    def books(self) -> Books:
        """What is seen now."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Breakable(Protocol):
    """A watched target whose environment can do what its contract with the engine excludes (`--beyond-contract`).

    beyond  the verbs by which it does so
    """

    beyond: frozenset[str]

    def faults(self) -> list[Command]:
        """What the contract excludes and could happen now, in a stable order. `enabled` lists none of it."""
        ...


def fault_in(target: object, commands: Iterable[Command]) -> str:
    """The first command that the environment contract of a target, or of its class, excludes: its verb, or nothing."""
    beyond = getattr(target, "beyond", frozenset[str]())
    return next((command.verb for command in commands if command.verb in beyond), "")
