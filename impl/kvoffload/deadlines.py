"""Deadlines of transfers: which are overdue. The engine has no clock; whoever serves with one asks here.

Off by default: an engine that waits for ever for a lost report shows it, and one that guesses wrong hides it.
A deadline should be far above what the slowest copy takes: what expired is computed or stored again.
"""

from collections.abc import Callable

from kvoffload.engine import Engine
from kvoffload.ids import JobId
from kvoffload.transfer_job import JobState


class Deadlines:
    """When each of an engine's transfers was first seen on its way. ValueError if the engine has no deadline."""

    def __init__(self, engine: Engine, clock: Callable[[], float]) -> None:
        """clock  seconds that only grow, such as `time.monotonic`"""
        if engine.config.deadline is None:
            raise ValueError("the engine's configuration has no deadline")
        self._engine = engine
        self._patience = engine.config.deadline
        self._clock = clock
        self._since: dict[JobId, float] = {}

    def overdue(self) -> tuple[JobId, ...]:
        """Transfers that have been on their way for as long as the deadline, by id. To be asked regularly: a transfer
        counts from when it was first seen."""
        now = self._clock()
        on_their_way = [
            job.id for job in self._engine.jobs.values() if job.launched and job.state is not JobState.FORGOTTEN
        ]
        self._since = {job: self._since.get(job, now) for job in on_their_way}
        return tuple([job for job, since in self._since.items() if now - since >= self._patience])
