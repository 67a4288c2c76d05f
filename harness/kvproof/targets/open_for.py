"""How an engine of checking opens the target that a job names: a class of the registry, or the machine itself."""

from collections.abc import Callable

from kvmodel import Machine
from kvproof.targets.registry import MACHINE, load
from kvproof.targets.target import Target, opened


def opener(target: str, device: str, machine: Machine) -> Callable[[], Target]:
    """A function that opens a fresh target. Raises UnknownTarget."""
    if target == MACHINE:
        from kvproof.targets.machine import MachineTarget

        return lambda: MachineTarget(machine.setting)
    target_class = load(target, device)
    return lambda: opened(target_class, machine.setting)
