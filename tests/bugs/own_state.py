"""Asks the invariants of the own state of a kvoffload that has a bug in it: in the interpreter that has it.

    python -m tests.bugs.own_state TRACE

Plays the commands of a trace on the ledger with no machine beside it, and prints as JSON the first property that is
broken in kvoffload's own state, [property, sentence, command], and the first invariant of the proofs, [name, command];
or null in place of either.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kvmodel import Machine
from kvproof.targets.command import Command
from kvproof.targets.invariants import Invariants, specification_of
from kvproof.targets.kvoffload import Ledger
from kvproof.trace import itf


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


def main(arguments: Sequence[str]) -> None:
    trace = itf.read(Path(arguments[0]))
    machine = Machine(trace.contract, trace.scope)
    print(json.dumps([broken(machine, trace.commands), broken_invariant(machine, trace.commands)]))


if __name__ == "__main__":
    main(sys.argv[1:])
