"""Asks the invariants of the own state of a kvoffload that has a bug in it: in the interpreter that has it."""

from collections.abc import Sequence
from pathlib import Path

from kvmodel import Machine
from kvproof.targets.command import Command
from kvproof.targets.invariants import Invariants, specification_of
from kvproof.targets.kvoffload import Ledger
from kvproof.trace import itf
from tests.bugs.interpreter import require_planted


def broken(machine: Machine, commands: Sequence[Command]) -> tuple[str, str, int] | None:
    """The first invariant of a state that does not hold, and after which command."""
    target, invariants = Ledger(machine.setting), Invariants(machine.setting)
    for number, command in enumerate(commands, start=1):
        target.perform(command)
        found = invariants.of_state(target.own_state(target.view()))
        if found is not None:
            return found.property, found.sentence, number
    return None


def broken_invariant(machine: Machine, commands: Sequence[Command]) -> tuple[str, int] | None:
    """The first invariant of the proofs that does not hold, and after which command. None also where the specification
    does not have the modes of the machine."""
    target, specification = Ledger(machine.setting), specification_of(machine.setting)
    if specification is None:
        return None
    for number, command in enumerate(commands, start=1):
        target.perform(command)
        for found in specification.broken(target.own_state(target.view())):
            return found.invariant.name, number
    return None


def asked(path: str) -> tuple[tuple[str, str, int] | None, tuple[str, int] | None]:
    """Plays the commands of a trace on the ledger with no machine beside it: the first property that is broken in
    kvoffload's own state, its sentence and the command; and the first invariant of the proofs, and the command."""
    require_planted()
    trace = itf.read(Path(path))
    machine = Machine(trace.contract, trace.scope)
    return broken(machine, trace.commands), broken_invariant(machine, trace.commands)
