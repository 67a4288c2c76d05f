"""A worker's reports on their way to vLLM's scheduler, and what may become of them there.

vLLM's contract with its environment is that every worker reports every job exactly once. Beyond it a completion may be
lost, or come a second time.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

LATEST = 2
"""How many of a worker's jobs may be reported again, the latest: older ones bring nothing that these do not."""


class Form(ABC):
    """How the workers of one connector report."""

    @abstractmethod
    def loads_of(self, metadata: Any) -> Mapping[int, Sequence[str]]:
        """The load jobs of a launch, with the requests that each is for."""

    @abstractmethod
    def blank_report(self) -> Any:
        """A report of nothing, as a worker's side of the connector makes it."""

    @abstractmethod
    def completed_in(self, report: Any) -> dict[int, int]:
        """The report's own dictionary of what is complete: key -> how often."""

    @abstractmethod
    def key_of(self, job: int) -> int | None:
        """By which key a report names a job; None: it does not, a request of the job is said to have been received."""

    @abstractmethod
    def job_of_key(self, key: int) -> int:
        """The job that a report names by a key."""


class Reports:
    """What one engine's workers report, and have reported.

    loading  the requests of every load job that was launched
    told     jobs that each worker has reported, oldest first
    lost, again  of each worker: jobs that its next report lacks although they are complete, or repeats
    """

    def __init__(self, form: Form, workers: int) -> None:
        self.form = form
        self.loading: dict[int, frozenset[str]] = {}
        self.told: list[list[int]] = [[] for _ in range(workers)]
        self.lost: list[set[int]] = [set() for _ in range(workers)]
        self.again: list[set[int]] = [set() for _ in range(workers)]

    def launched(self, metadata: Any) -> None:
        """A step goes to the workers, with these jobs."""
        for job, requests in self.form.loads_of(metadata).items():
            self.loading[job] = frozenset(requests)

    def repeatable(self, worker: int) -> list[int]:
        """Jobs that this worker may report again."""
        return [job for job in self.told[worker][-LATEST:] if job not in self.again[worker]]

    def arrived(self, worker: int, received: set[str], report: Any) -> tuple[set[str], Any]:
        """What reaches the scheduler of what one worker said: requests that were loaded, and the connector's report."""
        received = set(received)
        completed = {} if report is None else self.form.completed_in(report)
        jobs = [self.form.job_of_key(key) for key in completed]
        jobs += [job for job, requests in self.loading.items() if job not in jobs and requests and requests <= received]
        self.told[worker] += [job for job in jobs if job not in self.told[worker]]
        for job in self.lost[worker].intersection(jobs):
            self.lost[worker].discard(job)
            received -= self.loading.get(job, frozenset())
            key = self.form.key_of(job)
            if key is not None:
                del completed[key]
        for job in sorted(self.again[worker]):
            received |= self.loading.get(job, frozenset())
            key = self.form.key_of(job)
            if key is not None and report is None:
                report = self.form.blank_report()
                completed = self.form.completed_in(report)
            if key is not None:
                completed[key] = completed.get(key, 0) + 1
        self.again[worker].clear()
        return received, report if completed else None
