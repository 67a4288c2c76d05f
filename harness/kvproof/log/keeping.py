"""Keep a violation that a log shows, as any other is kept: its trace, its report, its verdict, a test, a timeline."""

from pathlib import Path

from kvproof.bundle import files_of
from kvproof.job import Job
from kvproof.report.failure_text import failure_text, replaying
from kvproof.report.timeline import timeline
from kvproof.targets.registry import is_ours
from kvproof.trace import store
from kvproof.trace.trace import of_failure
from kvproof.verdict import Result


def keep(root: Path, job: Job, result: Result, commit: str) -> tuple[Path, str]:
    """Where its trace is now, and what to say of it. Raises OSError, and ValueError for a result without failure.

    An engine that nothing here can open has no test: whoever has an adapter names it to replay.
    """
    failure = result.failure
    if failure is None:
        raise ValueError("the result has no failure that could be kept")
    trace = of_failure(job, failure, commit)
    page = timeline(result.story) if result.story is not None else None
    files = files_of(failure, trace, result.seconds, page)
    if not is_ours(failure.target):
        del files[store.REPRO_FILE]
    folder = root / failure.fingerprint
    text = failure_text(failure, saved=store.shown(folder))
    path = store.save(root, failure.fingerprint, trace, text + "\n", files)
    return path, f"Saved {store.shown(folder)}. Replay: {replaying(failure)}"
