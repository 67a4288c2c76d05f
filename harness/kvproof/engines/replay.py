"""replay: perform the commands of a trace again, and judge them by this version's machine."""

import time

from kvmodel import Machine
from kvproof.engines.run_of import failure_of, run_of
from kvproof.engines.verdict_of import verdict_of
from kvproof.job import Cut, Job, Progress, reading_of
from kvproof.search.modes import Variant
from kvproof.targets.open_for import not_taken, opener
from kvproof.trace.trace import Trace
from kvproof.verdict import Result, Verdict


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """PASSED if every command can be accounted for, REFUTED at the first that cannot. ERROR for a trace that is not for
    this target, or does what its own scope does not have."""
    started = time.monotonic()
    trace = job.options["trace"]
    assert isinstance(trace, Trace)
    reason = not_taken(job.target, job.device, trace.commands)
    if reason:
        return job.result(Verdict.ERROR, 0.0, detail=reason)
    machine = Machine(job.contract, job.scope)
    done = 0

    def counted() -> bool:
        nonlocal done
        done += 1
        progress(f"{done:,} of {len(trace.commands):,} commands")
        return cut()

    run = run_of(machine, opener(job.target, job.device, machine, reading_of(job)), trace.commands, counted)
    seconds = time.monotonic() - started
    counts = {"commands": run.done, "planned_commands": len(trace.commands)}
    if run.divergence is not None:
        failure = failure_of(
            Variant(job.scope_name, job.scope, job.contract),
            job.target, job.engine, job.device, trace.commands[: run.done], run.divergence, run.notes, "",
        )  # fmt: skip
        verdict, failure = verdict_of(job, failure)
        return job.result(verdict, seconds, failure=failure, counts=counts)
    if run.beyond:
        return job.result(Verdict.ERROR, seconds, detail=run.beyond, counts=counts)
    if run.done < len(trace.commands):
        detail = f"cut short after {run.done:,} of {len(trace.commands):,} commands"
        return job.result(Verdict.UNDETERMINED, seconds, detail=detail, counts=counts)
    return job.result(Verdict.PASSED, seconds, detail="all accounted for", counts=counts)
