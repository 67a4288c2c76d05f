"""High-water marks: a worker says that it has copied every job of one direction up to an id.

Each stream of a worker has a mark of its own, since ids are issued to stores and loads alike. A mark stays true for
ever, so that one that is late, repeated or overtaken by a later one does no harm, and a later one says all that a lost
one would have said. The worker therefore states its mark whenever it is polled, whether or not it has moved. The
scheduler keeps no mark: its table knows which jobs a worker owes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kvoffload.ids import JobId, WorkerRank
from kvoffload.plain import Plain
from kvoffload.transfer_job import Direction, TransferJob

MARKED = (Direction.STORE, Direction.LOAD)
"""The directions of which there are marks."""

NO_MARK: JobId = -1
"""The mark of a stream on which nothing has run."""


@dataclass(slots=True)
class StreamMark(Plain):
    """The mark of one stream, on its worker.

    pending  jobs that the stream was given and that the mark has not passed, oldest first
    ahead    those among them that have run, although an older one has not: a device may end copies in any order
    failed   positions of pairs that could not be copied, of jobs that the engine was not told of yet: it is told with a
             mark, which says that copies are over and not that they were successful
    mark     the last job that it has passed, or NO_MARK
    """

    pending: list[JobId]
    ahead: set[JobId]
    failed: dict[JobId, tuple[int, ...]]
    mark: JobId

    @classmethod
    def fresh(cls) -> Self:
        return cls([], set(), {}, NO_MARK)

    def given(self, job: JobId) -> None:
        """The stream gets one more job; ids ascend on a stream."""
        self.pending.append(job)

    def ran(self, job: JobId, failed: tuple[int, ...] = ()) -> None:
        """A job has run. The mark passes it when all before it have run too, and then those that ran ahead."""
        self.ahead.add(job)
        if failed:
            self.failed[job] = failed
        while self.pending and self.pending[0] in self.ahead:
            self.mark = self.pending.pop(0)
            self.ahead.discard(self.mark)

    def taken_in(self, mark: JobId) -> None:
        """The engine knows everything up to this mark, failures included: they need not be said again."""
        for job in [job for job in self.failed if job <= mark]:
            del self.failed[job]


@dataclass(slots=True)
class WorkerMarks(Plain):
    """Both marks of one worker."""

    stores: StreamMark
    loads: StreamMark

    @classmethod
    def fresh(cls) -> Self:
        return cls(StreamMark.fresh(), StreamMark.fresh())

    def of(self, direction: Direction) -> StreamMark:
        return self.stores if direction is Direction.STORE else self.loads


def passed(
    jobs: Mapping[JobId, TransferJob], direction: Direction, worker: WorkerRank, mark: JobId
) -> tuple[JobId, ...]:
    """The jobs of which this mark is news, in order of id: several, or none if it came before or comes too late."""
    return tuple(
        [
            job.id
            for job in jobs.values()
            if job.id <= mark and job.direction is direction and job.launched and worker in job.awaiting
        ]
    )
