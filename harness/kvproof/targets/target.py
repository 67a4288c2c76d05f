"""A target: an engine under check, behind an adapter that makes no inferences."""

from collections.abc import Hashable, Mapping
from typing import Any, Protocol, runtime_checkable

from kvmodel import State
from kvmodel.setting import Setting
from kvproof.search.canonical import Renaming
from kvproof.targets import journal
from kvproof.targets.command import Command
from kvproof.targets.outcome import Outcome, Refused
from kvproof.targets.view import View


class Target(Protocol):
    """What every adapter provides.

    exact  the engine makes exactly the reference's choices; otherwise any legal choice is accepted

    A class may also have
    disciplines  those that it follows, as names; else its `contract`; else both are checked
    contract     a Contract with the only modes that it has; without it every mode is tried, in turns
    meanings     what its resets may mean, as words of `kvmodel.scope`; without it each of them
    survivors    whether its resets can leave running requests their blocks (yes)
    prepare      a classmethod that takes a Setting, for what is done once for all of its targets and may take its time
    tiers        those that its resets may name, as words of `kvmodel.tiers`; without it only `all`, and no reset that
                 it is given has a third argument
    deaths       True if its workers can be made to die, by the command `die`; without it none is
    alone        an Alone (kvproof.targets.alone): how the engine is asked for the same without an adapter. Then what
                 fails is kept as a test that needs no kvproof too
    second_tier  True if it has a second host tier of as many blocks as the scope says; without it none is asked of it
    patience_s   seconds after which a call that does not come back counts as a hang (10), unless --patience says
                 otherwise. In Python code it is interrupted; any other is ended with its process a second later
    and the methods of Offering, Snapshotting and Restarting, below: the product search needs the first two.
    """

    exact: bool

    def __init__(self, setting: Setting) -> None:
        """A fresh engine for a setting: contract, scope, and the keys of all prompts."""
        ...

    def perform(self, command: Command) -> Outcome:
        """Carry out one command. Refusals that the engine documents are outcomes, `Refused`; whatever else it raises
        may be raised on: it is a violation with a trace, and so is an answer that makes no sense."""
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
        """Keys of the actions of `kvproof.targets.view.OFFERED` that it would take if it was asked. Changes nothing."""
        ...


@runtime_checkable
class Snapshotting(Protocol):
    """A target whose whole state can be copied out, put back, and compared: what the product search needs."""

    def save(self) -> Hashable:
        """Everything that what it does or shows later can depend on, as a value that the target does not change any
        more. Equal snapshots are of states between which nothing tells: where one was judged, so was the other."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Be again as it was when `save` answered this snapshot."""
        ...

    def control(self, renaming: Renaming) -> Hashable:
        """The whole control state in canonical names: equal if and only if nothing but names differs."""
        ...


@runtime_checkable
class Discounting(Protocol):
    """A target whose control state can be told without reports that are still to come, and change nothing then: a
    search can let one state stand for those in which they have come (`kvproof.search.allowance`)."""

    def control_without(
        self, renaming: Renaming, late: Mapping[int, frozenset[int]]
    ) -> tuple[Hashable, tuple[Hashable, ...]]:
        """As `control`, but as if these reports had come, by job and worker; and what it knows of each of the jobs,
        which may be none of the renaming's: equal only if nothing but names differs."""
        ...


@runtime_checkable
class Abstracting(Protocol):
    """A target that can give its whole state in the terms of the properties, from what it knows itself: then every
    property is asked of it too, whatever the machine thinks."""

    def own_state(self, view: View) -> State:
        """The state now. view: what `view` has just answered."""
        ...


@runtime_checkable
class Restarting(Protocol):
    """A target that can become as fresh as a new one, for less."""

    def restart(self) -> None: ...


class StepTarget:
    """Base for engines whose one call schedules a whole step, as vLLM's `schedule` does.

    The repository has one for kvoffload, in tests/harness/step_target.py.

    A subclass has a constructor that takes the Setting, a method `view`, and one method for each verb in `verbs`, with
    the verb's arguments (`kvproof.targets.command.VERBS`), which answers an Outcome:

    schedule       one call; `observed` is what it did, read from its own outputs: who ended, was woken, preempted, grew
                   or was admitted, with the blocks that were chosen, and the launch. The kinds in any order, those of
                   one kind in the engine's.
    handle_output  the oldest launched step's output; `observed` may add who ended then
    report, report_all   completions of one worker; `observed` may add who was woken. Where `reports` of the contract
                   are marks, it is report_mark instead of report
    reset          the value is the engine's answer, True or False; a third argument only if the class has `tiers`
    run            the oldest operation of a worker's stream; an engine that cannot be held back lacks this verb,
                   and is fuzzed with an environment that runs copies when it likes

    What is asked of the scheduler decision by decision (lookup, admit, grow, launch, wake, finish) it does not have.
    The faults (die, fail_copy, fail_block, duplicate_report, lose_report, repeat_mark, lose_mark, forge_report,
    free_twice) are for those who add them to `verbs`.

    refusals  the exceptions by which the engine refuses, as documented; anything else that it raises is a violation
    """

    exact = False

    verbs: frozenset[str] = frozenset(
        {"submit", "schedule", "run", "report", "report_all", "handle_output", "preempt", "abort", "reset"}
    )

    refusals: tuple[type[Exception], ...] = ()

    def perform(self, command: Command) -> Outcome:
        """Call the method that has the verb's name. Raises AttributeError for a verb that `verbs` does not list."""
        if command.verb not in self.verbs:
            raise AttributeError(f"{type(self).__name__} takes no command {command.verb!r}")
        try:
            outcome: Outcome = getattr(self, command.verb)(*command.args)
        except self.refusals as refusal:
            return Refused(f"{type(refusal).__name__}: {refusal}")
        return outcome

    def close(self) -> None:
        """Nothing to give back, unless a subclass says otherwise."""


def opened(target_class: type[Target], setting: Setting) -> Target:
    """A fresh target for a setting."""
    journal.begun(setting)
    return target_class(setting)
