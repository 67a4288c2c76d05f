"""One attempt: a plan of commands at a scope, performed with what still makes sense of it.

When commands are left out, those that stay mean something else: job 5 has become job 3, or was never made. So jobs are
known by who made them and not by their ids, and what nobody could give at that point is left out too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kvmodel import Contract, Machine, State
from kvmodel.scope import Scope
from kvproof.engines.run_of import RunOf, run_of
from kvproof.targets.command import Command
from kvproof.targets.target import Target
from kvproof.targets.wording import command_of, may_be_given

OF_A_JOB = {"report": 1, "report_mark": 2, "duplicate_report": 1, "lose_report": 1, "expire": 0}
"""Verbs that name a job, and which of their arguments it is."""


OpenAt = Callable[[Machine], Callable[[], Target]]
"""What opens fresh targets for a machine's setting."""


class Made(NamedTuple):
    """A job as the command that made it knows it."""

    id: int
    direction: int
    request: int


@dataclass(frozen=True)
class Plan:
    """Commands at a scope, in some modes. made: the jobs that each of them made when they were performed last."""

    contract: Contract
    scope: Scope
    commands: tuple[Command, ...]
    made: tuple[tuple[Made, ...], ...]


class Attempt(NamedTuple):
    """A plan as it was performed up to its violation, and the run."""

    plan: Plan
    run: RunOf


def attempted(open_at: OpenAt, plan: Plan, cut: Callable[[], bool]) -> Attempt:
    """Perform a plan on a fresh target. Raises BadScope if its modes and its scope exclude each other."""
    machine = Machine(plan.contract, plan.scope)
    adapting = _Adapting(machine, plan)
    run = run_of(machine, open_at(machine), adapting, cut, told=adapting.reached)
    commands = tuple(adapting.performed[: run.done])
    return Attempt(replace(plan, commands=commands, made=tuple(adapting.made[: run.done])), run)


class _Adapting:
    """The commands of a plan, each as it is to be given in the state that was reached."""

    def __init__(self, machine: Machine, plan: Plan) -> None:
        self.machine = machine
        self.plan = plan
        self.state = machine.initial()
        self.performed: list[Command] = []
        self.made: list[tuple[Made, ...]] = []
        self.ids: dict[int, int] = {}

    def __iter__(self) -> Iterator[Command]:
        for command, made in zip(self.plan.commands, self.plan.made, strict=True):
            adapted = self._adapted(command)
            if adapted is None:
                continue
            before = self.state
            self.performed.append(adapted)
            self.made.append(())
            yield adapted
            self.made[-1] = _made_since(before, self.state)
            self._recognise(made, self.made[-1])

    def reached(self, state: State) -> None:
        """Hears the machine's state after each command."""
        self.state = state

    def _recognise(self, before: Sequence[Made], now: Sequence[Made]) -> None:
        left = list(now)
        for job in before:
            for other in left:
                if (job.direction, job.request) == (other.direction, other.request):
                    self.ids[job.id] = other.id
                    left.remove(other)
                    break

    def _adapted(self, command: Command) -> Command | None:
        """The command with the job that it means; None: there is nothing that it could mean now."""
        position = OF_A_JOB.get(command.verb)
        if position is not None:
            meant = list(command.args)
            meant[position] = self.ids.get(int(command.args[position]), -1)
            command = Command(command.verb, tuple(meant))
            if not may_be_given(self.machine, self.state, command):
                return self._another(command, position)
        return command if may_be_given(self.machine, self.state, command) else None

    def _another(self, command: Command, position: int) -> Command | None:
        """The same of the oldest job of which it can be said now."""
        fixed = command.args[:position]
        enabled = map(command_of, self.machine.actions(self.state))
        found = [other for other in enabled if other.verb == command.verb and other.args[:position] == fixed]
        return min(found, key=lambda other: int(other.args[position]), default=None)


def _made_since(before: State, after: State) -> tuple[Made, ...]:
    return tuple(Made(job.id, job.direction, job.request) for job in after.jobs if job.id >= before.next_job)


def performed(
    contract: Contract, open_at: OpenAt, scope: Scope, commands: Sequence[Command], cut: Callable[[], bool]
) -> Attempt:
    """Perform just these commands on a fresh target, and see which jobs each of them makes."""
    machine = Machine(contract, scope)
    before = machine.initial()
    made: list[tuple[Made, ...]] = []

    def reached(state: State) -> None:
        nonlocal before
        made.append(_made_since(before, state))
        before = state

    run = run_of(machine, open_at(machine), commands, cut, told=reached)
    made = [*made, *[()] * run.done][: run.done]
    return Attempt(Plan(contract, scope, tuple(commands[: run.done]), tuple(made)), run)
