"""robustness: random walks on a watched target, each with one fault that its contract with its environment excludes.

What an engine breaks after such a fault is no violation: nobody promised that it would survive it. What a walk breaks
without its fault too is left to fuzz, which has it as the violation that it is.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from kvmodel import Contract, Machine
from kvproof.engines.run_of import failure_of, run_of
from kvproof.engines.shrink import shrunk
from kvproof.engines.verdict_of import verdict_of
from kvproof.failure import Failure
from kvproof.job import Cut, Job, Progress, reading_of
from kvproof.obligations.walk import Walk, walk
from kvproof.search.modes import with_modes
from kvproof.targets.divergence import Divergence
from kvproof.targets.open_for import opener
from kvproof.targets.registry import load
from kvproof.targets.target import Target
from kvproof.verdict import Result, Verdict

COMMANDS = 5_000
"""Commands that a run plans, unless the job's option `commands` says otherwise."""


class Opened(NamedTuple):
    """One of the modes that take turns, and how a target is opened in it."""

    contract: Contract
    open_target: Callable[[], Target]


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """PASSED if nothing breaks after any fault of the job's option `fault`; FRAGILE, with the failure that came most
    often, and all of them by their ids in the detail; UNDETERMINED if no walk had the fault."""
    started = time.monotonic()
    planned, fault = job.options.get("commands", COMMANDS), job.options["fault"]
    assert isinstance(planned, int)
    assert isinstance(fault, str)
    turns = getattr(load(job.target, job.device), "turns", lambda contract: [contract])(job.contract)
    modes = [Opened(contract, _opener(job, contract)) for contract in turns]
    found: dict[tuple[str, ...], Failure] = {}
    times = Counter[tuple[str, ...]]()
    performed = walked = faulted = 0
    while performed < planned:
        if cut():
            detail = f"cut short after {performed:,} of {planned:,} commands"
            return job.result(Verdict.UNDETERMINED, time.monotonic() - started, detail=detail)
        mode = modes[walked % len(modes)]
        taken = walk(mode.open_target, job.seed * 1_000_003 + walked, fault)
        performed, walked = performed + len(taken.commands), walked + 1
        progress(f"{performed:,} of {planned:,} commands")
        if not any(command.verb == fault for command in taken.commands):
            continue
        faulted += 1
        if taken.divergence is None or _breaks_without(job, mode, taken, fault):
            continue
        key = (taken.divergence.property, *taken.divergence.cause)
        if key not in found:
            failure = _failure(job, mode, taken, taken.divergence, cut)
            if not failure.fault:
                continue
            found[key] = failure
        times[key] += 1
    counts = {"commands": performed, "planned_commands": planned}
    amounts = f"{performed:,} commands in {walked:,} walks, {faulted:,} of them with a fault"
    if not faulted:
        detail = f"{amounts}: nothing is known of {fault}, which the target declares and never offered"
        return job.result(Verdict.UNDETERMINED, time.monotonic() - started, detail=detail, counts=counts)
    if not found:
        return job.result(Verdict.PASSED, time.monotonic() - started, detail=amounts, counts=counts)
    most = times.most_common()
    listed = ", ".join(f"{found[key].fingerprint} {key[0]} in {count:,}" for key, count in most)
    detail = f"{amounts}; {sum(times.values()):,} broke something: {listed}"
    seconds = time.monotonic() - started
    return job.result(Verdict.FRAGILE, seconds, detail=detail, failure=found[most[0][0]], counts=counts)


def _opener(job: Job, contract: Contract) -> Callable[[], Target]:
    return opener(job.target, job.device, Machine(contract, job.scope), reading_of(job))


def _breaks_without(job: Job, mode: Opened, taken: Walk, fault: str) -> bool:
    """Whether the same commands break something without the fault."""
    rest = [command for command in taken.commands if command.verb != fault]
    return run_of(Machine(mode.contract, job.scope), mode.open_target, rest, lambda: False).divergence is not None


def _failure(job: Job, mode: Opened, taken: Walk, divergence: Divergence, cut: Cut) -> Failure:
    contract = mode.contract
    machine = Machine(contract, job.scope)
    shorter, run, minimal = shrunk(machine, mode.open_target, taken.commands, divergence, cut)
    variant = with_modes(job.scope_name, job.scope, contract)
    failure = failure_of(
        variant, job.target, job.engine, job.device, shorter, run.divergence or divergence, run.notes, minimal
    )
    return verdict_of(job, failure)[1]
