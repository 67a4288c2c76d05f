"""How an engine of checking opens the target that a job names: a class of the registry, or the machine itself."""

from collections.abc import Callable, Sequence

from kvmodel import Machine
from kvproof.targets.command import VERBS, Command
from kvproof.targets.registry import MACHINE, load
from kvproof.targets.target import Target, opened


def opener(target: str, device: str, machine: Machine) -> Callable[[], Target]:
    """A function that opens a fresh target. Raises UnknownTarget."""
    if target == MACHINE:
        from kvproof.targets.machine import MachineTarget

        return lambda: MachineTarget(machine.setting)
    target_class = load(target, device)
    prepare = getattr(target_class, "prepare", None)
    if prepare is not None:
        prepare(machine.setting)
    return lambda: opened(target_class, machine.setting)


def not_taken(target: str, device: str, commands: Sequence[Command]) -> str:
    """Why a target cannot be given these commands, in a sentence; empty: it can. Raises UnknownTarget.

    An engine whose one call schedules a whole step cannot be asked for one decision: its refusal would say nothing.
    """
    verbs = VERBS.keys() if target == MACHINE else getattr(load(target, device), "verbs", VERBS.keys())
    for number, command in enumerate(commands, start=1):
        if command.verb not in verbs:
            return f"target {target} takes no {command.verb}, which is command {number} of the trace"
    return ""
