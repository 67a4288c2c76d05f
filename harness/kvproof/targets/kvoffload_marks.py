"""Marks of kvoffload's workers, as its adapters handle them: which can be said again, and what a worker has run."""

from kvoffload.completions.marks import NO_MARK
from kvoffload.engine import Engine
from kvoffload.ids import JobId
from kvoffload.transfer_job import Direction
from kvoffload.worker import Worker

COPIES = {"store": Direction.STORE, "load": Direction.LOAD}
"""Direction of what runs on each stream that has marks."""


def said_before(engine: Engine, worker: Worker, direction: Direction) -> JobId:
    """The highest mark of this worker that is no news to the engine; NO_MARK if every mark would be."""
    assert worker.marks is not None
    owed = [job.id for job in engine.jobs.values() if job.direction is direction and worker.rank in job.awaiting]
    return min([worker.marks.of(direction).mark, *[job - 1 for job in owed]])


def repeated(engine: Engine, worker: Worker, direction: Direction, which: str) -> bool:
    """Report the last mark that is no news once more, or the first that there can have been. False: there is none."""
    last = said_before(engine, worker, direction)
    if last == NO_MARK:
        return False
    engine.report_mark(worker.rank, direction, last if which == "last" else 0)
    return True


def has_taken_in(worker: Worker, direction: Direction, job: JobId) -> bool:
    """Has the worker learnt that this job has run? Its device does not list it any more then."""
    if worker.marks is None:
        return False
    stream = worker.marks.of(direction)
    return job <= stream.mark or job in stream.ahead
