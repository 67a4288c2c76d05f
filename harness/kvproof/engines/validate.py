"""validate: follow a log through the machine, to its end or to the first line that the contract does not explain."""

import dataclasses
import time
from pathlib import Path

from kvproof.job import Cut, Job, Progress
from kvproof.log.entry import BadLog
from kvproof.log.follow import Follower, Stuck
from kvproof.log.lines import Lines
from kvproof.log.telling import told
from kvproof.obligations.logged import Logged
from kvproof.verdict import Result, Verdict

EVERY = 64
"""After so many lines it is asked whether to go on."""

PAUSE_S = 0.1
"""How long a log that is followed is left alone where it has no more (seconds)."""


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """PASSED if every line is explained, REFUTED at the first that is not, ERROR for a file that is no log. With the
    option `follow` the log is waited for where it has no more: until its own end, or UNDETERMINED when it is cut."""
    started = time.monotonic()
    path = Path(str(job.options["log"]))
    explained = 0
    follower: Follower | None = None

    def counts() -> dict[str, int]:
        return {"commands": explained, "inferred_runs": follower.inferred if follower is not None else 0}

    def wait() -> bool:
        progress(f"{explained:,} lines explained, waiting for more")
        time.sleep(PAUSE_S)
        return not cut()

    try:
        lines = Lines(path, wait if job.options.get("follow") else None)
        if lines.header.tokens_per_block:
            return _obliged(job, lines, started, progress, cut)
        follower = Follower(str(path), lines.header, lines.failures())
        for entry in lines:
            stuck = follower.take(entry)
            if stuck is not None:
                return _refuted(job, follower, stuck, explained, time.monotonic() - started)
            explained += 1
            if not explained % EVERY:
                progress(f"{explained:,} lines explained")
                if cut():
                    detail = f"cut short after {explained:,} lines"
                    seconds = time.monotonic() - started
                    return job.result(Verdict.UNDETERMINED, seconds, detail=detail, counts=counts())
        if lines.wait is not None and not lines.ended:
            detail = f"all {explained:,} lines so far are explained; the log has not ended"
            seconds = time.monotonic() - started
            return job.result(Verdict.UNDETERMINED, seconds, detail=detail, counts=counts())
    except BadLog as error:
        return job.result(Verdict.ERROR, time.monotonic() - started, detail=str(error), counts=counts())
    inferred = f", {follower.inferred:,} runs inferred" if follower.inferred else ""
    detail = f"all {explained:,} lines explained{inferred}"
    return job.result(Verdict.PASSED, time.monotonic() - started, detail=detail, counts=counts())


def _obliged(job: Job, lines: Lines, started: float, progress: Progress, cut: Cut) -> Result:
    """The same of an engine that is held to its obligations alone."""
    header = lines.header
    logged = Logged(str(lines.path), header.scope.device_blocks, header.tokens_per_block, header.contract.depth)
    explained = 0

    def result(verdict: Verdict, detail: str) -> Result:
        return job.result(verdict, time.monotonic() - started, detail=detail, counts={"commands": explained})

    for number, record in lines.records():
        broken = logged.take(number, record)
        if broken is not None:
            detail = f"{broken.property}   line {number}, after {explained:,} that break nothing\n{broken.sentence}"
            return dataclasses.replace(result(Verdict.REFUTED, detail), property=broken.property)
        explained += 1
        if not explained % EVERY:
            progress(f"{explained:,} lines break nothing")
            if cut():
                return result(Verdict.UNDETERMINED, f"cut short after {explained:,} lines")
    if lines.wait is not None and not lines.ended:
        return result(Verdict.UNDETERMINED, f"all {explained:,} lines so far break nothing; the log has not ended")
    return result(Verdict.PASSED, f"none of {explained:,} lines breaks what every engine owes")


def _refuted(job: Job, follower: Follower, stuck: Stuck, explained: int, seconds: float) -> Result:
    counts = {"commands": explained, "inferred_runs": follower.inferred}
    result = job.result(Verdict.REFUTED, seconds, detail=told(follower, stuck, explained), counts=counts)
    return dataclasses.replace(result, property=stuck.divergence.property)
