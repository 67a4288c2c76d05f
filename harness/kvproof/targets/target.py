"""A target: an engine under check, behind an adapter that makes no inferences."""

from collections.abc import Hashable
from typing import Protocol, runtime_checkable

from kvmodel.setting import Setting
from kvproof.search.canonical import Renaming
from kvproof.targets.command import Command
from kvproof.targets.outcome import Outcome
from kvproof.targets.view import View


class Target(Protocol):
    """What every adapter provides.

    exact  the engine makes exactly the reference's choices; otherwise any legal choice is accepted
    """

    exact: bool

    def __init__(self, setting: Setting) -> None:
        """A fresh engine for a setting: contract, scope, and the keys of all prompts."""
        ...

    def perform(self, command: Command) -> Outcome:
        """Carry out one command. Refusals that the engine documents are outcomes; so is whatever else it raises."""
        ...

    def view(self) -> View:
        """What can be seen now. `offers` may be None here; a target that declares them has `offers()`."""
        ...

    def close(self) -> None:
        """Give back threads and memory. Idempotent."""
        ...


@runtime_checkable
class Offering(Protocol):
    """A target that can say, without doing it, what its scheduler would do next."""

    def offers(self) -> frozenset[tuple[object, ...]]:
        """Keys of the actions of `kvproof.targets.view.OFFERED` that it would take if it was asked."""
        ...


@runtime_checkable
class Snapshotting(Protocol):
    """A target whose whole state can be copied out, put back, and compared: what the product search needs."""

    def save(self) -> bytes: ...

    def restore(self, snapshot: bytes) -> None: ...

    def control(self, renaming: Renaming) -> Hashable:
        """The whole control state in canonical names: equal if and only if nothing but names differs."""
        ...


@runtime_checkable
class Restarting(Protocol):
    """A target that can become as fresh as a new one, for less."""

    def restart(self) -> None: ...


class StepTarget:
    """Base for engines whose one call schedules a whole step.

    Subclasses write `schedule`, and the client's and workers' commands as methods of the verbs' names; what is asked
    of the scheduler decision by decision (lookup, admit, grow, launch, wake, finish) they do not have. `verbs` lists
    the commands that they take.
    """

    exact = False

    verbs: frozenset[str] = frozenset(
        {"submit", "schedule", "run", "report", "report_all", "handle_output", "preempt", "abort", "reset"}
    )

    def perform(self, command: Command) -> Outcome:
        """Call the method that has the verb's name. Raises AttributeError for a verb that `verbs` does not list."""
        if command.verb not in self.verbs:
            raise AttributeError(f"{type(self).__name__} takes no command {command.verb!r}")
        outcome: Outcome = getattr(self, command.verb)(*command.args)
        return outcome


def opened(target_class: type[Target], setting: Setting) -> Target:
    """A fresh target for a setting."""
    return target_class(setting)
