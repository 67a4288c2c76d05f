"""Attempts with a watched target, which is held to no machine: what could not be given to it is left out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kvmodel import Contract, Machine
from kvmodel.scope import Scope
from kvproof.engines.run_of import run_of
from kvproof.obligations.runs import NOT_POSSIBLE
from kvproof.shrinking.attempt import Attempt, OpenAt, Plan
from kvproof.targets.command import Command


def attempted(open_at: OpenAt, plan: Plan, cut: Callable[[], bool]) -> Attempt:
    """Perform a plan on a fresh target. Raises BadScope if its modes and its scope exclude each other."""
    machine = Machine(plan.contract, plan.scope)
    run = run_of(machine, open_at(machine), plan.commands, cut)
    kept = [position for position, note in enumerate(run.notes) if note != NOT_POSSIBLE]
    commands = tuple([plan.commands[position] for position in kept])
    notes = tuple([run.notes[position] for position in kept])
    return Attempt(replace(plan, commands=commands, made=((),) * len(kept)), run._replace(done=len(kept), notes=notes))


def performed(
    contract: Contract, open_at: OpenAt, scope: Scope, commands: Sequence[Command], cut: Callable[[], bool]
) -> Attempt:
    """Perform these commands on a fresh target."""
    return attempted(open_at, Plan(contract, scope, tuple(commands), ((),) * len(commands)), cut)
