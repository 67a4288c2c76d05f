"""What both disciplines share: the table of transfers, what a completion publishes, which stores are made."""

from abc import abstractmethod
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from kvoffload import promotions
from kvoffload.block_pool import BlockPool
from kvoffload.cache_events import CacheEvent, journal_of
from kvoffload.completions import marks, per_job
from kvoffload.config import Config
from kvoffload.connector import Connector, ConnectorOutput, SchedulerOutput, Settled
from kvoffload.errors import NotBound, NotOutstanding, OutOfBlocks
from kvoffload.ids import Block, Failures, JobId, Key, Pair, RequestId, Tiers, WorkerRank
from kvoffload.operations import Tier
from kvoffload.plan import LaunchPlan, PlannedCopy, PlannedShare
from kvoffload.request import Phase, Request
from kvoffload.stores import cascade, eager, lazy
from kvoffload.stores.choice import Choice
from kvoffload.transfer_job import Direction, JobState, TransferJob

_TO_HOST = (Direction.STORE, Direction.PROMOTION)


@dataclass(slots=True)
class TransferConnector(Connector):
    """A connector with one record for each transfer that some worker has not reported.

    host      the host pool; second: that of the second tier, without a block if there is none
    device    the scheduler's pool; None until it is bound
    jobs      transfers in order of id
    next_job  id of the next transfer; ids are never used twice, not even after a reset
    queued    loads and promotions for the next launch
    storing   keys that LIVE stores and promotions carry to the host: a key is not stored twice at once, across requests
              and steps (vLLM PR 41289)
    """

    config: Config
    host: BlockPool
    device: BlockPool | None
    jobs: dict[JobId, TransferJob]
    next_job: JobId
    queued: list[JobId]
    storing: set[Key]
    second: BlockPool

    @classmethod
    def create(cls, config: Config, events: list[CacheEvent] | None = None) -> Self:
        """Without transfers, not bound. What happens in the caches of the host tiers is appended to `events`."""
        host = BlockPool.of_size(config.host_blocks, journal_of(Tier.HOST, events))
        told = journal_of(Tier.SECOND, events) if config.second_blocks else None
        return cls(config, host, None, {}, 0, [], set(), BlockPool.of_size(config.second_blocks, told))

    # What the disciplines differ in.

    @abstractmethod
    def _own(self, job: TransferJob) -> None:
        """Add the references that a new job holds; a store has its host destinations, a load its host sources, and
        what goes between the host and the second tier has all of its own."""

    @abstractmethod
    def _disown(self, job: TransferJob) -> None:
        """Release every reference that the job holds."""

    @abstractmethod
    def _fence(
        self, shares: Sequence[PlannedShare], stores: Sequence[Pair], loads: Sequence[Pair]
    ) -> tuple[JobId, ...]:
        """Jobs that a launch of this must wait for; they are ordered flushed."""

    @abstractmethod
    def _abandon(self, load: TransferJob, request: Request) -> bool:
        """The request gives up this launched load, which is ABANDONED now. True: it must keep its table meanwhile."""

    @abstractmethod
    def _take_away(self, load: TransferJob) -> None:
        """A reset takes this launched load from its request, which has let go of it already."""

    @abstractmethod
    def _store_for(self, request: Request | None) -> RequestId | None:
        """Whom a store of this request's blocks keeps waiting, if anybody."""

    # The hooks.

    def bind_device_pool(self, pool: BlockPool) -> None:
        self.device = pool

    def get_num_new_matched_tokens(self, request: Request, num_computed_blocks: int) -> int | None:
        if request.deferred:
            return None
        return len(self.host.cache.run(request.prompt, num_computed_blocks))

    def touch_matched(self, request: Request, num_computed_blocks: int) -> tuple[Block, ...]:
        matched = self.host.cache.run(request.prompt, num_computed_blocks)
        self.host.touch(matched)
        return tuple(matched)

    def release_matched(self, blocks: Sequence[Block]) -> None:
        self.host.release(blocks)

    @property
    def promotes(self) -> bool:
        return bool(self.second.counts)

    def can_promote(self, request: Request, num_computed_blocks: int) -> bool:
        return self.promotes and bool(self._promotable(request, num_computed_blocks))

    def promote(self, request: Request, num_computed_blocks: int) -> TransferJob:
        pairs = self._promotable(request, num_computed_blocks)
        if not pairs:
            raise OutOfBlocks(f"the second tier alone has nothing for request {request.id}, or no host block is free")
        self.second.touch([pair.source for pair in pairs])
        for pair in pairs:
            self.host.claim(pair.destination)
        job = self._new_job(Direction.PROMOTION, request.id, pairs)
        self.storing.update(pair.key for pair in pairs)
        self.queued.append(job.id)
        request.jobs.add(job.id)
        return job

    def _promotable(self, request: Request, num_computed_blocks: int) -> tuple[Pair, ...]:
        return promotions.choose(request.prompt[num_computed_blocks:], self.host, self.second, self.storing)

    def update_state_after_alloc(
        self, request: Request, blocks: Sequence[Block], matched: Sequence[Block], num_computed_blocks: int
    ) -> TransferJob | None:
        if not matched:
            return None
        pairs = tuple(
            [
                Pair(source, destination, key)
                for source, destination, key in zip(matched, blocks, request.prompt[num_computed_blocks:], strict=False)
            ]
        )
        job = self._new_job(Direction.LOAD, request.id, pairs)
        request.jobs.add(job.id)
        self.queued.append(job.id)
        return job

    def has_work(self, requests: Collection[Request], generation: int) -> bool:
        if self.queued or self._cascade():
            return True
        return any(choice.pairs for choice in self._choices(requests, generation, ()))

    def build_connector_meta(self, output: SchedulerOutput, requests: Collection[Request]) -> LaunchPlan | None:
        self._device()
        down = self._cascade()
        choices = list(self._choices(requests, output.generation, {pair.source for pair in down}))
        if output.step is None and not (self.queued or down or any(choice.pairs for choice in choices)):
            return None
        queued = [self.jobs[job] for job in self.queued]
        loading = [job for job in queued if job.direction is Direction.LOAD]
        flush = self._fence(
            output.shares,
            [pair for choice in choices for pair in choice.pairs],
            [pair for job in loading for pair in job.pairs],
        )
        for job in queued:
            job.launched = True
        self.queued.clear()
        cascading = [self._launched_cascade(down)] if down else []
        storing = [store for choice in choices if (store := self._store(choice)) is not None]
        return LaunchPlan(
            step=output.step,
            shares=output.shares,
            stores=tuple([PlannedCopy(job.id, job.pairs) for job in storing]),
            loads=tuple([job.id for job in loading]),
            flush=flush,
            steps_before=output.steps_before,
            load_copies=tuple([PlannedCopy(job.id, job.pairs) for job in loading]),
            cascades=tuple([PlannedCopy(job.id, job.pairs) for job in cascading]),
            promotions=tuple(
                [PlannedCopy(job.id, job.pairs) for job in queued if job.direction is Direction.PROMOTION]
            ),
        )

    def update_connector_output(
        self, worker: WorkerRank, jobs: Sequence[JobId], failed: Failures
    ) -> Iterator[ConnectorOutput]:
        per_job.validate(self.jobs, jobs, failed, self.next_job)
        return (self._reported(worker, job, failed.get(job, ())) for job in jobs)

    def _reported(self, worker: WorkerRank, job_id: JobId, failed: Sequence[int]) -> ConnectorOutput:
        job = per_job.credited(self.jobs, job_id, worker, failed)
        if job is None:
            return ConnectorOutput(stale=True)
        stale = job.state is JobState.FORGOTTEN
        if job.awaiting:
            return ConnectorOutput(stale=stale)
        del self.jobs[job.id]
        if job.state is JobState.FORGOTTEN:
            return ConnectorOutput(stale=True)
        loaded = self._publish(job) if job.state is JobState.LIVE else 0
        self._disown(job)
        settled = None if job.request is None else Settled(job.id, job.request, loaded)
        if job.failed and job.state is JobState.LIVE:
            return self._failed(job, settled)
        return ConnectorOutput(settled)

    def update_connector_mark(
        self, worker: WorkerRank, direction: Direction, mark: JobId, failed: Failures
    ) -> tuple[tuple[JobId, ...], Iterator[ConnectorOutput]]:
        per_job.validate(self.jobs, (mark,), {}, self.next_job)
        news = marks.passed(self.jobs, direction, worker, mark)
        return news, self.update_connector_output(worker, news, failed)

    def expire(self, job: JobId) -> ConnectorOutput:
        per_job.validate(self.jobs, (job,), {}, self.next_job)
        overdue = self.jobs.get(job)
        if overdue is None or not overdue.launched or overdue.state is JobState.FORGOTTEN:
            raise NotOutstanding(f"job {job} is complete, dropped or not launched")
        wanted = overdue.state is JobState.LIVE
        overdue.failed.update(range(len(overdue.pairs)))
        if wanted and overdue.direction in _TO_HOST:
            self.storing.difference_update([pair.key for pair in overdue.missing])
        self._forget(overdue)
        settled = None if overdue.request is None else Settled(overdue.id, overdue.request, 0)
        return self._failed(overdue, settled) if wanted else ConnectorOutput(settled)

    def shut_down(self) -> None:
        for job in list(self.jobs.values()):
            if not job.launched:
                del self.jobs[job.id]
                self._disown(job)
            elif job.state is not JobState.FORGOTTEN:
                self._forget(job)
        self.queued.clear()
        self._clear_caches(self._device(), "all")

    def request_preempted(self, request: Request) -> bool:
        load = self._load_of(request)
        if load is None:
            return False
        if not load.launched:
            self._cancel(load, request)
            return False
        load.state = JobState.ABANDONED
        return self._abandon(load, request)

    def request_finished(self, request: Request) -> bool:
        keep_table = self.request_preempted(request)
        if not keep_table:
            request.jobs.clear()
        return keep_table

    def request_reset(self, request: Request) -> None:
        load = self._load_of(request)
        if load is None:
            return
        if load.launched:
            request.jobs.discard(load.id)
            self._take_away(load)
        else:
            self._cancel(load, request)

    # Parts.

    def _device(self) -> BlockPool:
        if self.device is None:
            raise NotBound("the device pool is not bound to the connector yet")
        return self.device

    def _choices(self, requests: Collection[Request], generation: int, kept: Container[Block]) -> Iterator[Choice]:
        """Stores of a launch that evicts none of these host blocks."""
        if self.config.store_mode == "lazy":
            return lazy.choose(self._device(), self.host, self.storing, self.config.lazy_window, kept)
        return eager.choose(requests, self.host, self.storing, generation, kept)

    def _cascade(self) -> tuple[Pair, ...]:
        return cascade.choose(self.host, self.second) if self.promotes else ()

    def _launched_cascade(self, pairs: tuple[Pair, ...]) -> TransferJob:
        """Make the cascade that was chosen: its destinations are the next free ones of the second tier."""
        self.host.touch([pair.source for pair in pairs])
        self.second.take(len(pairs))
        job = self._new_job(Direction.CASCADE, None, pairs)
        job.launched = True
        return job

    def _new_job(self, direction: Direction, request: RequestId | None, pairs: tuple[Pair, ...]) -> TransferJob:
        job = TransferJob(self.next_job, direction, request, pairs, set(range(self.config.workers)))
        self.next_job += 1
        self.jobs[job.id] = job
        self._own(job)
        return job

    def _store(self, choice: Choice) -> TransferJob | None:
        """Make the store that was chosen; the host blocks are those that the choice foresaw."""
        if choice.request is not None:
            choice.request.stored = choice.cursor
        if not choice.pairs:
            return None
        taken = self.host.take(len(choice.pairs))
        pairs = tuple([Pair(pair.source, block, pair.key) for pair, block in zip(choice.pairs, taken, strict=True)])
        job = self._new_job(Direction.STORE, self._store_for(choice.request), pairs)
        if choice.request is not None and job.request is not None:
            choice.request.jobs.add(job.id)
        self.storing.update([pair.key for pair in pairs])
        job.launched = True
        return job

    def _publish(self, job: TransferJob) -> int:
        """Let what the job copied be found on the tier it was copied to. Answers how many blocks were loaded."""
        if job.direction in _TO_HOST:
            self.storing.difference_update([pair.key for pair in job.pairs])
            cache = self.host.cache
        else:
            cache = (self._device() if job.direction is Direction.LOAD else self.second).cache
        intact = job.intact
        cache.publish([(pair.destination, pair.key) for pair in intact])
        return len(intact) if job.direction is Direction.LOAD else 0

    def _failed(self, job: TransferJob, settled: Settled | None) -> ConnectorOutput:
        """What follows of the failures of a transfer that was wanted. What a load could not read is found no more: it
        would be tried again by everybody who shares it (vLLM PR 49328)."""
        if job.direction is Direction.CASCADE:
            return ConnectorOutput(lost=len(job.missing))  # nobody waits; the host has it still, and it goes down again
        if job.direction in _TO_HOST:
            for pair in job.missing if job.direction is Direction.PROMOTION else ():
                self.second.cache.withdraw(pair.source, pair.key)
            return ConnectorOutput(settled, unstored=frozenset([pair.key for pair in job.missing]))
        for pair in job.missing:
            self.host.cache.withdraw(pair.source, pair.key)
        return ConnectorOutput(settled, unreadable=frozenset([pair.source for pair in job.missing]))

    def _forget(self, job: TransferJob) -> None:
        """The job holds and publishes nothing any more; until it has run everywhere, launches wait for it."""
        self._disown(job)
        job.state = JobState.FORGOTTEN
        job.flush_ordered = True

    def _load_of(self, request: Request) -> TransferJob | None:
        """The load that a LOADING request waits for; None if that is complete, or in any other phase."""
        if request.phase is not Phase.LOADING:
            return None
        for job_id in request.jobs:
            return self.jobs[job_id]
        return None

    def _cancel(self, load: TransferJob, request: Request) -> None:
        """Undo a load that no worker knows of."""
        self.queued.remove(load.id)
        request.jobs.discard(load.id)
        del self.jobs[load.id]
        self._disown(load)

    def _cancel_promotions(self, requests: Collection[Request], tiers: Tiers) -> None:
        """A reset of the host undoes the promotions that no worker knows of."""
        if tiers == "device":
            return
        queued = [job for job in self.jobs.values() if job.direction is Direction.PROMOTION and not job.launched]
        for promotion in queued:
            self.queued.remove(promotion.id)
            del self.jobs[promotion.id]
            self._disown(promotion)
        for request in requests:
            request.jobs.difference_update([promotion.id for promotion in queued])

    def _clear_caches(self, device: BlockPool, tiers: Tiers) -> None:
        """Nothing can be found there any more. Without the host, nothing counts as being stored either: no store is
        LIVE any longer."""
        if tiers != "device":
            self.storing.clear()
            self.host.cache.clear()
            self.second.cache.clear()
        if tiers != "host":
            device.cache.clear()
