"""Pinning: a job references the blocks on both sides of its copies until every worker has reported it.

So no block can be reused under a copy, and no launch ever waits for one; except for copies of transfers that expired,
which cannot be stopped, and must not hold their blocks for ever: launches wait for those as under fencing.
A reset cannot take blocks from copies that run: it abandons the jobs, answers False, and lets them drain (PR 39726 of
vLLM, SimpleCPUOffloadConnector).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kvoffload.connectors.transfers import TransferConnector
from kvoffload.ids import JobId, Meaning, Pair, RequestId, Tiers
from kvoffload.plan import PlannedShare
from kvoffload.request import Request
from kvoffload.transfer_job import JobState, TransferJob


@dataclass(slots=True)
class PinningConnector(TransferConnector):
    """Jobs own their sources and their destinations."""

    def _own(self, job: TransferJob) -> None:
        self._device().touch(job.device_blocks)

    def _disown(self, job: TransferJob) -> None:
        self._device().release(job.device_blocks)
        self.host.release(job.host_blocks)
        if self.promotes:
            self.second.release(job.second_blocks)

    def _fence(
        self, shares: Sequence[PlannedShare], stores: Sequence[Pair], loads: Sequence[Pair]
    ) -> tuple[JobId, ...]:
        """Transfers that expired are all that does not own what it touches."""
        return tuple([job.id for job in self.jobs.values() if job.flush_ordered])

    def _store_for(self, request: Request | None) -> RequestId | None:
        return None

    def _abandon(self, load: TransferJob, request: Request) -> bool:
        """The load owns its destinations itself, so the request goes its way without it."""
        request.jobs.discard(load.id)
        return False

    def _take_away(self, load: TransferJob) -> None:
        load.state = JobState.ABANDONED

    def reset_cache(self, meaning: Meaning, requests: Collection[Request], tiers: Tiers) -> bool:
        """True if and only if nothing holds a block of these tiers: a store and a load do on both, a cascade and a
        promotion below the device alone, and on the device every request that survived with its table."""
        device = self._device()
        self._cancel_promotions(requests, tiers)
        outstanding = [job for job in self.jobs.values() if job.state is not JobState.FORGOTTEN]
        for job in outstanding:
            if job.publishes_in(tiers):
                job.state = JobState.ABANDONED
        for request in requests:
            request.jobs.difference_update([job.id for job in outstanding if job.state is JobState.ABANDONED])
        self._clear_caches(device, tiers)
        survivors = tiers != "host" and any(request.table for request in requests)
        if tiers == "device":
            outstanding = [job for job in outstanding if job.device_blocks]
        return not outstanding and not survivors
