"""Fencing: device blocks may be reused while a copy still reads or writes them, by whoever waits for the copy.

A store references its host destinations only, a load its host sources only. Whatever a launch would overwrite under an
unfinished copy, or read before one has written it, is in its flush set: nothing of the launch runs on a worker until
those copies have (vLLM PR 41956, OffloadingConnector). A reset forgets every job at once and orders it flushed; reports
of forgotten jobs come in later and must change nothing (vLLM PR 48102).

The workers know what was copied, the scheduler only what was reported. So a job counts as unfinished until every worker
has reported it, and one that was copied but not reported is flushed too: the wait is satisfied where the copy has run.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kvoffload.connectors.transfers import TransferConnector
from kvoffload.ids import JobId, Meaning, Pair, RequestId, Tiers
from kvoffload.plan import PlannedShare
from kvoffload.request import Request
from kvoffload.transfer_job import Direction, JobState, TransferJob

_BELOW_HOST = (Direction.CASCADE, Direction.PROMOTION)
"""They own both their sides, and a launch writes nothing that is owned: none is flushed unless it was dropped."""


@dataclass(slots=True)
class FencingConnector(TransferConnector):
    """Jobs own host blocks only, and requests wait for their own jobs before they are admitted again."""

    def _own(self, job: TransferJob) -> None:
        """Nothing to add: host blocks, and those of the second tier, were taken or matched for it."""

    def _disown(self, job: TransferJob) -> None:
        self.host.release(job.host_blocks)
        if self.promotes:
            self.second.release(job.second_blocks)

    def _fence(
        self, shares: Sequence[PlannedShare], stores: Sequence[Pair], loads: Sequence[Pair]
    ) -> tuple[JobId, ...]:
        if not self.jobs:
            return ()
        device_written = {block for share in shares for block, _ in share.writes} | {pair.destination for pair in loads}
        device_read = {block for share in shares for block, _ in share.reads} | {pair.source for pair in stores}
        host_written = {pair.destination for pair in stores}
        host_read = {pair.source for pair in loads}
        flush: list[JobId] = []
        for job in self.jobs.values():
            if not job.launched:
                continue
            if not job.flush_ordered and job.direction not in _BELOW_HOST:
                if job.direction is Direction.STORE:
                    sources, destinations = device_written, host_written | host_read
                else:
                    sources, destinations = host_written, device_written | device_read
                job.flush_ordered = any(
                    pair.source in sources or pair.destination in destinations for pair in job.pairs
                )
            if job.flush_ordered:
                flush.append(job.id)
        return tuple(flush)

    def _store_for(self, request: Request | None) -> RequestId | None:
        return None if request is None else request.id

    def _abandon(self, load: TransferJob, request: Request) -> bool:
        """The destinations are the request's: it keeps them, and waits for the load (vLLM PR 32255)."""
        return True

    def _take_away(self, load: TransferJob) -> None:
        self._forget(load)

    def reset_cache(self, meaning: Meaning, requests: Collection[Request], tiers: Tiers) -> bool:
        """True unless the contents became worthless and some request survived with blocks of them.

        Transfers never stand in the way: none that runs can publish there any more, and whoever reuses its blocks
        waits. Those that publish in a tier that is not reset go on, and who waits for them goes on waiting.
        """
        device = self._device()
        self._cancel_promotions(requests, tiers)
        forgotten = [job for job in self.jobs.values() if job.publishes_in(tiers)]
        for job in forgotten:
            if job.state is not JobState.FORGOTTEN:
                self._forget(job)
        for request in requests:
            request.jobs.difference_update([job.id for job in forgotten])
        self._clear_caches(device, tiers)
        return meaning == "evict" or not any(request.table for request in requests)
