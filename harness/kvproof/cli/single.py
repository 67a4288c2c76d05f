"""Run one job on a saved trace: what replay and shrink have in common."""

import argparse
import dataclasses
from pathlib import Path

from kvproof import __version__
from kvproof.cli.flags import configured_target, target_and_device
from kvproof.cli.planned import WORKERS
from kvproof.cli.progress import ProgressLine, waiting_for
from kvproof.job import Job
from kvproof.log.entry import BadLog
from kvproof.log.lines import Lines
from kvproof.runner import Outcome, run_jobs
from kvproof.targets.hardware import no_cuda
from kvproof.targets.registry import DEVICES, MACHINE, is_ours, load, to_type
from kvproof.trace import itf, store
from kvproof.trace.trace import BadTrace, Trace
from kvproof.usage import BadUsage


def read_trace(name: str) -> tuple[Trace, Path]:
    """The trace that an id, a file or a folder names, and where it is. Raises BadUsage."""
    try:
        path = store.resolve(name, store.default_root())
        return itf.read(path), path
    except BadTrace as error:
        if _is_log(name):
            raise BadUsage(f"{name!r:.200} is a log, and no trace; kvproof validate keeps a trace of it") from None
        raise BadUsage(str(error)) from None


def _is_log(name: str) -> bool:
    try:
        _ = Lines(Path(name)).header
    except BadLog:
        return False
    return True


def job_of(engine: str, trace: Trace, arguments: argparse.Namespace) -> Job:
    """The job that judges a trace on the target that the command line names, or else on the one that it was found on.

    A trace may come from anybody, and to load a target runs its code: one that the trace alone names must be
    kvoffload or the machine, or be named on the command line too, or in [tool.kvproof]. Raises BadUsage.
    """
    trusted = is_ours(trace.target) or trace.target in (MACHINE, configured_target())
    if arguments.target is None and not trusted:
        raise BadUsage(
            f"the trace is of target {trace.target!r:.100}, whose code is not run because a file says so; "
            f"add --target {to_type(trace.target):.100}"
        )
    if arguments.target is None:
        arguments.target = trace.target
    if arguments.target == MACHINE:
        return _job(engine, trace, MACHINE, "", arguments.patience)
    target, device = target_and_device(arguments)
    if device == "auto" and is_ours(target):
        device = trace.device if trace.device in DEVICES else DEVICES[0]
    elif device == "auto":
        device = ""
    if device == "cuda" and (reason := no_cuda(gated=True)):
        raise BadUsage(f"the trace cannot be tried on device cuda, {reason}; use --device host or --device ledger")
    if not is_ours(target):
        with waiting_for(f"importing {target}"):
            load(target)
    return _job(engine, trace, target, device, arguments.patience)


def _job(engine: str, trace: Trace, target: str, device: str, patience_s: float | None) -> Job:
    return Job(
        engine=engine,
        target=target,
        discipline=trace.contract.discipline,
        scope_name=trace.scope_name,
        scope=trace.scope,
        contract=trace.contract,
        seed=trace.seed,
        patience_s=patience_s,
        device=device,
        options={"trace": dataclasses.replace(trace, target=target, device=device), "reading": trace.reading},
    )


def run_one(job: Job, budget_s: float | None) -> Outcome:
    """Run one job with a progress line."""
    progress = ProgressLine()
    outcome = run_jobs([job], costs=[1.0], workers=WORKERS, budget_s=budget_s, show=progress.show)
    progress.clear()
    return outcome


def headline(job: Job, path: Path) -> str:
    """The first line of the screen."""
    device = f" on {job.device}" if job.device else ""
    what = f"target {job.target}{device}   {job.discipline}, {job.scope_name}"
    return f"kvproof {__version__}   {job.engine} {store.shown(path)}   {what}"
