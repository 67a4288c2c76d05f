"""validate: follow a log through the machine, to its end or to the first line that the contract does not explain."""

import dataclasses
import time
from collections import deque
from pathlib import Path

from kvmodel.errors import BadScope
from kvproof.engines.run_of import failure_of
from kvproof.failure import Failure
from kvproof.job import Cut, Job, Progress
from kvproof.log.account import account, listing, noted
from kvproof.log.entry import JSON, BadLog
from kvproof.log.follow import Follower, Stuck
from kvproof.log.lines import Lines
from kvproof.log.telling import told
from kvproof.log.transcript import SCOPE_NAME
from kvproof.obligations.logged import Logged
from kvproof.report.failure_text import reasons
from kvproof.search.modes import Variant
from kvproof.targets.registry import is_ours
from kvproof.verdict import Result, Verdict

EVERY = 64
"""After so many lines it is asked whether to go on."""

MOST_LISTED = 256
"""So many of the last lines of an engine that goes its own way are told (count): a line may have 1 MiB."""

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

    recent: deque[tuple[int, JSON]] = deque(maxlen=MOST_LISTED)
    for number, record in lines.records():
        broken = logged.take(number, record)
        recent.append((number, record))
        if broken is not None:
            detail = f"{broken.property}   line {number}, after {explained:,} that break nothing\n{broken.sentence}"
            story = listing(recent, broken, f"{lines.path.name}, {job.target}")
            return dataclasses.replace(result(Verdict.REFUTED, detail), property=broken.property, story=story)
        explained += 1
        if not explained % EVERY:
            progress(f"{explained:,} lines break nothing")
            if cut():
                return result(Verdict.UNDETERMINED, f"cut short after {explained:,} lines")
    if lines.wait is not None and not lines.ended:
        return result(Verdict.UNDETERMINED, f"all {explained:,} lines so far break nothing; the log has not ended")
    return result(Verdict.PASSED, f"none of {explained:,} lines breaks what every engine owes")


def _refuted(job: Job, follower: Follower, stuck: Stuck, explained: int, seconds: float) -> Result:
    """REFUTED with the account of the last lines; and with the failure that a trace can be made of, if it can."""
    counts = {"commands": explained, "inferred_runs": follower.inferred}
    said = told(follower, stuck, explained)
    title = f"{Path(follower.path).name}, {job.target}, {job.discipline}"
    story = account(follower, stuck, title)
    failure = None
    try:
        failure = _failure(job, follower, stuck)
        if story is not None:
            story = story._replace(reasons=" ".join(reasons(failure)))
    except BadScope as error:
        said += f"\nNo trace can be made of it: {error}."
    result = job.result(Verdict.REFUTED, seconds, detail=said, counts=counts, failure=failure)
    return dataclasses.replace(result, property=stuck.divergence.property, story=story)


def _failure(job: Job, follower: Follower, stuck: Stuck) -> Failure:
    """What was asked, as commands from the beginning on. Raises BadScope where a trace cannot say it."""
    transcript = follower.transcript
    if transcript.lacking:
        raise BadScope(transcript.lacking)
    answered = "" if stuck.entry.answered is None else f"answered {stuck.entry.answered}"
    notes = [*map(noted, follower.recent), answered]
    return failure_of(
        Variant(SCOPE_NAME, transcript.scope(), job.contract),
        job.target, job.engine, "ledger" if is_ours(job.target) else "", transcript.commands, stuck.divergence,
        [""] * (len(transcript.commands) - len(notes)) + notes, "",
        remark=f"It is line {stuck.entry.number} of {Path(follower.path).name}.",
    )  # fmt: skip
