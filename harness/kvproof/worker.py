"""The process in which one job runs: a crash of a target or an engine ends this process, and not the check."""

import os
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Protocol

from kvproof.engines import apart
from kvproof.engines.apart import may_die
from kvproof.job import Job, load_engine
from kvproof.obligations.books import Unreadable
from kvproof.targets.guarded import watch
from kvproof.verdict import Result, Verdict

PROGRESS_INTERVAL_S = 0.2


class Flag(Protocol):
    """A byte that both processes see; not 0: stop."""

    value: int


def work(job: Job, results: Connection, stop: Flag) -> None:
    """Run one job and send ("progress", text) and finally ("result", Result) down the connection."""
    os.dup2(2, 1)  # a target that prints must not write into the report, which may be JSON
    watch(job.patience_s)
    results.send(("result", outcome(job, _reporter(results), stop)))
    results.close()


def outcome(job: Job, progress: Callable[[str], None], stop: Flag) -> Result:
    """The engine's result, or ERROR if the engine raises: with one sentence where an adapter does not know the engine
    that it drives, else with the traceback in its detail. Code that is not ours runs in a child of this process."""
    started = time.monotonic()
    deadline = None if job.budget_s is None else started + job.budget_s

    def cut() -> bool:
        return stop.value != 0 or (deadline is not None and time.monotonic() > deadline)

    def engine(progress: Callable[[str], None]) -> Result:
        return _result(job, started, lambda: load_engine(job.engine)(job, progress, cut))

    if may_die(job.target):
        return _result(job, started, lambda: apart.run(job, engine, progress, cut))
    return engine(progress)


def _result(job: Job, started: float, run: Callable[[], Result]) -> Result:
    try:
        return run()
    except Unreadable as error:
        return job.result(Verdict.ERROR, time.monotonic() - started, detail=str(error))
    except BaseException as error:  # noqa: BLE001 (also SystemExit, which a target may raise: it is reported as ERROR)
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
        text = " ".join(str(error).split())
        headline = f"{type(error).__name__}: {text:.200}{where}"
        detail = headline + "\n" + "".join(traceback.format_exception(error))
        return job.result(Verdict.ERROR, time.monotonic() - started, detail=detail)


def _reporter(results: Connection) -> Callable[[str], None]:
    last = 0.0

    def progress(text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PROGRESS_INTERVAL_S:
            return
        last = now
        try:
            results.send(("progress", text))
        except OSError:  # whoever wanted to know is gone, killed perhaps; go too
            os._exit(1)

    return progress
