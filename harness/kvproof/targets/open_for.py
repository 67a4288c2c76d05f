"""How an engine of checking opens the target that a job names: a class of the registry, or the machine itself."""

from collections.abc import Callable, Sequence
from typing import cast

from kvmodel import Machine
from kvproof.job import Job, reading_of
from kvproof.targets.command import VERBS, Command
from kvproof.targets.ending import until
from kvproof.targets.outcome import Crashed
from kvproof.targets.registry import MACHINE, load
from kvproof.targets.target import Target, opened


def opener(target: str, device: str, machine: Machine, reading: str = "") -> Callable[[], Target]:
    """A function that opens a fresh target. Raises UnknownTarget.

    reading  of a reset that answered False, for a watched target; empty: as the target declares
    """
    if target == MACHINE:
        from kvproof.targets.machine import MachineTarget

        return lambda: MachineTarget(machine.setting)
    target_class = load(target, device)
    prepare = getattr(target_class, "prepare", None)
    if prepare is not None:
        prepare(machine.setting)
    if reading:
        return lambda: _read(opened(target_class, machine.setting), reading)
    return lambda: opened(target_class, machine.setting)


def _read(target: Target, reading: str) -> Target:
    target.reading = reading  # type: ignore[attr-defined]  # of watched targets alone
    return target


def opener_of(job: Job, machine: Machine) -> Callable[[], Target]:
    """The same of a job. With its option `ending`, the calls of `perform` and the Crashed that the last of them comes
    to, its targets crash there, without that call being made."""
    open_target = opener(job.target, job.device, machine, reading_of(job))
    ending = job.options.get("ending")
    if ending is None:
        return open_target
    calls, crash = cast(tuple[int, Crashed], ending)
    return until(open_target, calls, crash)


def not_taken(target: str, device: str, commands: Sequence[Command]) -> str:
    """Why a target cannot be given these commands, in a sentence; empty: it can. Raises UnknownTarget.

    An engine whose one call schedules a whole step cannot be asked for one decision: its refusal would say nothing.
    """
    verbs = VERBS.keys() if target == MACHINE else getattr(load(target, device), "verbs", VERBS.keys())
    for number, command in enumerate(commands, start=1):
        if command.verb not in verbs:
            return f"target {target} takes no {command.verb}, which is command {number} of the trace"
    return ""
