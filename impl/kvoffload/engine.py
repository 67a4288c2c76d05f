"""The public control plane: commands in, plans and answers out. Plain data throughout, so that it pickles."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kvoffload.block_pool import BlockPool
from kvoffload.cache_events import CacheEvent, journal_of
from kvoffload.config import Config
from kvoffload.connector import ConnectorOutput
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.connectors.pinning import PinningConnector
from kvoffload.connectors.transfers import TransferConnector
from kvoffload.errors import NoDeadline, NotBound, OutOfBlocks, ShutDown
from kvoffload.ids import Block, Failures, JobId, Key, Meaning, RequestId, Survivors, Tiers, WorkerRank
from kvoffload.operations import Tier
from kvoffload.plan import LaunchPlan
from kvoffload.request import Phase, Request
from kvoffload.scheduler import Admission, Deferred, LookupResult, Scheduler
from kvoffload.statistics import Statistics
from kvoffload.step_report import (
    Admitted,
    Event,
    Grown,
    Launched,
    LookupReleased,
    Preempted,
    Promoted,
    StepReport,
    Woken,
)
from kvoffload.transfer_job import Direction, JobState, TransferJob
from kvoffload.watching import Watchable, telling, watcher_of_new

ALL_COPIED: Failures = {}
"""No copy failed."""


@telling(
    "submit", "abort", "preempt", "collect", "reset", "promote", "lookup", "release_lookup", "admit", "grow",
    "preempt_under_pressure", "wake", "finish", "stop", "launch", "handle_output", "report", "report_mark", "expire",
    "declare_dead", "schedule",
)  # fmt: skip
@dataclass(slots=True)
class Engine(Watchable):
    """One engine's control plane: no thread, lock, tensor, clock or device in it.

    Every method either does what it says, or raises a KVOffloadError (or ValueError for malformed arguments) and has
    changed nothing. `Engine(config)` is not bound: it takes requests, but touches no block until `bind`, as a
    connector is built before the KV cache is in vLLM.

    `watcher` (kvoffload.watching) is told of every call; there is none unless somebody wants to know, and it is no part
    of this state.
    """

    config: Config
    scheduler: Scheduler = field(init=False)
    connector: TransferConnector = field(init=False)
    statistics: Statistics = field(init=False)
    events: list[CacheEvent] | None = field(init=False)

    def __post_init__(self) -> None:
        kind = PinningConnector if self.config.discipline == "pinning" else FencingConnector
        self.events = [] if self.config.events else None
        self.connector = kind.create(self.config, self.events)
        pool = BlockPool.of_size(self.config.device_blocks, journal_of(Tier.DEVICE, self.events))
        partial = self.config.admission == "partial"
        self.scheduler = Scheduler(pool, self.connector, {}, self.config.depth, partial, self.config.window)
        self.statistics = Statistics()
        self.watched_by(watcher_of_new(self))

    @classmethod
    def create(cls, config: Config, connector: type[TransferConnector] | None = None) -> "Engine":
        """A bound engine. connector: its class, in place of that of the discipline."""
        engine = cls(config)
        if connector is not None:
            engine.connector = connector.create(config, engine.events)
            engine.scheduler.connector = engine.connector
        engine.bind()
        return engine

    def __reduce__(self) -> tuple[Callable[..., "Engine"], tuple[object, ...]]:
        return type(self).of_parts, (self.config, self.scheduler, self.connector, self.statistics, self.events)

    @classmethod
    def of_parts(
        cls,
        config: Config,
        scheduler: Scheduler,
        connector: TransferConnector,
        statistics: Statistics,
        events: list[CacheEvent] | None,
    ) -> "Engine":
        """An engine that goes on where another one was, with what that one consisted of."""
        engine = cls.__new__(cls)
        engine.config = config
        engine.scheduler = scheduler
        engine.connector = connector
        engine.statistics = statistics
        engine.events = events
        engine.watched_by(None)
        return engine

    def bind(self) -> None:
        """Give the connector the device pool. Repeating it changes nothing."""
        self.connector.bind_device_pool(self.scheduler.device)

    # Read only.

    @property
    def bound(self) -> bool:
        return self.connector.device is not None

    @property
    def device_pool(self) -> BlockPool:
        return self.scheduler.device

    @property
    def host_pool(self) -> BlockPool:
        return self.connector.host

    @property
    def second_pool(self) -> BlockPool:
        """Of the second tier; without a block if there is none."""
        return self.connector.second

    @property
    def requests(self) -> dict[RequestId, Request]:
        """Every request in order of id, the ended ones until they are collected."""
        return self.scheduler.requests

    @property
    def jobs(self) -> dict[JobId, TransferJob]:
        """Every transfer, in order of id, that some worker has not reported; also those that are FORGOTTEN."""
        return self.connector.jobs

    def has_work(self) -> bool:
        """Must the engine keep stepping? Also an idle one must, while transfers hold blocks (vLLM PR 41180)."""
        return (
            bool(self.scheduler.pipeline)
            or any(request.phase is not Phase.DONE for request in self.requests.values())
            or any(job.state is not JobState.FORGOTTEN for job in self.jobs.values())
        )

    # What routers want to know.

    def take_events(self) -> tuple[CacheEvent, ...]:
        """Everything that became findable in a cache, or ceased to be, since the last call, in order; none if the
        engine is configured without `events`. Call it once a step: they are kept until then."""
        if not self.events:
            return ()
        taken = tuple(self.events)
        self.events.clear()
        return taken

    # Commands of the client.

    def submit(self, request: RequestId, prompt: Sequence[Key], total: Sequence[Key]) -> None:
        """A new request: keys of its prompt's blocks, and the same followed by those of the blocks to be decoded.

        WrongPhase if the id was used before; ValueError if the keys make no sense or cannot fit into the device pool.
        """
        if not self.config.repeats and len(set(total)) < len(total):
            raise ValueError(f"request {request}: keys must differ from each other")
        self.scheduler.submit(request, prompt, total)

    def abort(self, request: RequestId) -> None:
        """The client wants it no more. UnknownRequest if it has ended, WrongPhase if it was aborted before.

        Under fencing a request whose load is on its way is DRAINING until the load is reported, then DONE.
        """
        self.scheduler.abort(request)

    def preempt(self, request: RequestId) -> None:
        """A LOADING or RUNNING request loses its blocks and waits again. UnknownRequest, WrongPhase.

        Under fencing a request whose load is on its way is DRAINING until the load is reported, then WAITING.
        """
        self.scheduler.preempt(request)

    def collect(self, request: RequestId) -> None:
        """The client has seen that the request is DONE: forget it. UnknownRequest, WrongPhase if it is not DONE."""
        self.scheduler.collect(request)

    def reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers = "all") -> bool:
        """Empty the caches of these tiers. `meaning` says whether the contents became worthless, `requests` what
        running ones do.

        Whatever it answers, nothing from before is served from there any more. True: it is over; False: something still
        holds blocks (pinning: a transfer; both: a survivor of `invalidate`), so ask again when that has drained.
        One tier alone is reset by `evict` only, and that of the host with `keep`: it holds no request's blocks.
        NotBound before `bind`, ValueError for any other words or combination.
        """
        known = meaning in ("invalidate", "evict") and requests in ("preempt", "keep")
        if not known or tiers not in ("all", "device", "host"):
            raise ValueError(f"no reset of tiers {tiers!r} means {meaning!r} with requests {requests!r}")
        if meaning == "invalidate" and tiers != "all":
            raise ValueError(f"after an invalidating reset of the {tiers} tier alone the other one would serve old KV")
        if tiers == "host" and requests == "preempt":
            raise ValueError("no request holds host blocks: a reset of the host tier alone preempts nobody")
        self._require_bound()
        done = self.scheduler.reset(meaning, requests, tiers)
        self.statistics.resets += 1
        self.statistics.false_resets += not done
        return done

    # Decisions of the scheduler, one by one.

    def can_promote(self, request: RequestId) -> bool:
        return self.bound and self.scheduler.can_promote(request)

    def promote(self, request: RequestId) -> TransferJob:
        """Bring back to the host what a WAITING request would hit there and the second tier alone has.

        It waits for that, and is looked up and admitted afterwards. NotBound, UnknownRequest, WrongPhase (also if there
        is nothing to promote, or no room for it).
        """
        self._require_bound()
        return self.scheduler.promote(request)

    def can_lookup(self, request: RequestId) -> bool:
        return self.bound and self.scheduler.can_lookup(request)

    def lookup(self, request: RequestId) -> LookupResult | Deferred:
        """Find the longest cached prefix of a WAITING request and keep it referenced; an earlier lookup is dropped.

        Deferred while its own transfers are outstanding, while a request that runs wants a block, and while blocks can
        be promoted for it.
        NotBound, UnknownRequest, WrongPhase.
        """
        self._require_bound()
        return self.scheduler.lookup(request)

    def release_lookup(self, request: RequestId) -> None:
        """Give up what its lookup keeps. UnknownRequest, WrongPhase if it was not looked up."""
        self.scheduler.release_lookup(request)

    def can_admit(self, request: RequestId) -> bool:
        return self.bound and self.scheduler.can_admit(request)

    def admit(self, request: RequestId) -> Admission:
        """Give a WAITING request the blocks of its prompt, and queue the load of what only the host has.

        All of its blocks, or with partial admission those that are found, or one if none is.

        NotBound, UnknownRequest, WrongPhase (also if deferred, or if blocks can be promoted for it); OutOfBlocks, and
        then it keeps what it had looked up.
        While a request that runs wants a block, that one comes first: OutOfBlocks however many are free.
        """
        self._require_bound()
        return self.scheduler.admit(request)

    def can_grow(self, request: RequestId) -> bool:
        return self.scheduler.wants_block(request) and self.scheduler.has_room(request)

    def grow(self, request: RequestId) -> Block:
        """One more block for a RUNNING request that has computed all it holds, or has launched the compute of it.

        UnknownRequest, WrongPhase, OutOfBlocks.
        """
        return self.scheduler.grow(request)

    def pressure_victim(self) -> RequestId | None:
        """Whom `preempt_under_pressure` would preempt."""
        return self.scheduler.pressure_victim()

    def preempt_under_pressure(self) -> RequestId | None:
        """If a request cannot grow for want of blocks, preempt the last one behind it, and answer which.

        The oldest that cannot grow is served, and nobody is preempted for a younger one: so the oldest request always
        gets on, and two never take turns in undoing each other's work. None: nobody is short of blocks, or there is
        nobody to preempt (the grower then waits).
        """
        victim = self.scheduler.pressure_victim()
        if victim is not None:
            self.scheduler.preempt(victim)
            self.statistics.pressure_preemptions += 1
        return victim

    def can_wake(self, request: RequestId) -> bool:
        return self.scheduler.can_wake(request)

    def wake(self, request: RequestId) -> None:
        """A LOADING request whose load is complete runs. UnknownRequest, WrongPhase.

        It looks at the load that the request waits for now: a call that comes late never wakes another one's load.
        """
        self.scheduler.wake(request)

    def can_finish(self, request: RequestId) -> bool:
        return self.scheduler.can_finish(request)

    def finish(self, request: RequestId) -> None:
        """A RUNNING request that has computed everything is DONE. UnknownRequest, WrongPhase."""
        self.scheduler.finish(request)

    def stop(self, request: RequestId) -> None:
        """The output that was handled last ends a RUNNING request: a stop token was sampled, although more could be
        decoded. It is DONE, also if a launched step computes for it. UnknownRequest; WrongPhase, also if it has no
        output of its own yet, or has them all.
        """
        self.scheduler.stop(request)

    def can_launch(self) -> bool:
        """No more outputs are awaited than may be, and there is something to compute or to copy."""
        return self.bound and self.scheduler.can_launch()

    def launch(self) -> LaunchPlan:
        """Launch one step; every worker must be given the plan, plans in order. NotBound, NothingToLaunch."""
        self._require_bound()
        return self.scheduler.launch()

    # What comes back from the workers.

    def can_handle_output_of(self) -> int | None:
        """The number of the oldest step whose output is awaited."""
        return self.scheduler.pipeline[0].step if self.scheduler.pipeline else None

    def handle_output(self) -> None:
        """Take in the output of the oldest step that awaits it. The caller guarantees that its compute has run on the
        workers that `output_from` names. NotRunnable if no output is awaited."""
        self.scheduler.handle_output()

    def report(self, worker: WorkerRank, jobs: Sequence[JobId], failed: Failures = ALL_COPIED) -> None:
        """This worker is done with these jobs. UnknownJob if one was never issued: then the whole batch is refused.

        failed: positions of the pairs that it could not copy, by job. A block that failed on any worker is not used:
        of a load it is computed instead, of a store it may be stored again. ValueError, and the batch refused, for a
        pair that a job does not have.
        Reports may be late, repeated, or about jobs dropped long ago: those are counted and change nothing.
        """
        self._take_in(self.connector.update_connector_output(worker, jobs, failed))

    def report_mark(
        self, worker: WorkerRank, direction: Direction, mark: JobId, failed: Failures = ALL_COPIED
    ) -> tuple[JobId, ...]:
        """This worker is done with every job of this direction up to `mark`. UnknownJob if no such job was issued.

        failed: as of `report`, of any jobs; what is said of others than those that are news now is not looked at.
        Answers of which jobs it is news: perhaps of none, since marks may be late, repeated, lost and overtaken.
        """
        news, outputs = self.connector.update_connector_mark(worker, direction, mark, failed)
        self._take_in(outputs)
        return news

    def expire(self, job: JobId) -> None:
        """The deadline of this transfer has passed (the caller has a clock, the engine has none): it failed.

        Nothing of it is published, and nobody waits for it any more; its late reports are absorbed as stale. Its copies
        may still run: whatever is launched from now on waits for them, on each worker by itself. NoDeadline if the
        configuration has none, UnknownJob if it was never issued, NotOutstanding if it is complete or dropped.
        """
        if self.config.deadline is None:
            raise NoDeadline(f"transfers have no deadline here; job {job} is waited for")
        self._take_in((self.connector.expire(job),))
        self.statistics.expired_jobs += 1

    def declare_dead(self, worker: WorkerRank) -> None:
        """This worker is dead (whoever watches it says so, the engine has no clock): the engine shuts down.

        Every block has its part on every worker, so that nothing can be served without one. Every request ends and
        counts as failed; no block is referenced and none can be hit; what living workers report late is absorbed as
        stale. Nothing more is submitted. NoDeadline if the configuration has none, ShutDown if that has happened
        already, ValueError for a worker that it does not have.
        """
        if self.config.deadline is None:
            raise NoDeadline(f"workers have no deadline here; worker {worker} is waited for")
        if not 0 <= worker < self.config.workers:
            raise ValueError(f"worker {worker} of {self.config.workers}")
        if self.scheduler.shut:
            raise ShutDown("the engine has shut down already")
        self.scheduler.shut_down()

    def _take_in(self, outputs: Iterable[ConnectorOutput]) -> None:
        for output in outputs:
            if output.settled is not None:
                self.scheduler.settle(output.settled)
            self.scheduler.face_failures(output.unstored, output.unreadable)
            self.statistics.stale_completions += output.stale
            self.statistics.failed_blocks += len(output.unstored) + len(output.unreadable) + output.lost

    # All of it.

    def schedule(self, may_launch: bool = True) -> StepReport:
        """One scheduling call: wake, grow (preempting under pressure), promote, admit in order of id as many as fit,
        launch.

        Nobody is admitted in a call that preempted: the blocks are for those who were short of them. `may_launch`:
        False if some worker is too far behind to be given another step. NotBound before `bind`.
        """
        self._require_bound()
        events: list[Event] = []
        for request in self.requests:
            if self.can_wake(request):
                self.wake(request)
                events.append(Woken(request))
        preempted = self._grow_all(events)
        self._promote_all(events)
        if not preempted:
            self._admit_all(events)
            self._promote_all(events)
        plan = self.launch() if may_launch and self.can_launch() else None
        if plan is not None:
            events.append(Launched(plan))
        return StepReport(tuple(events), plan)

    def _grow_all(self, events: list[Event]) -> bool:
        """Grow whoever wants to, in order of id. True if somebody was preempted for it.

        Lookups are given up first. A victim whose blocks are all shared, or pinned by stores, frees nothing; then
        nobody else is preempted in this call, which would go through all requests for nothing (vLLM issue 49674).
        """
        preempted = False
        for request in self.requests:
            if not self.scheduler.wants_block(request):
                continue
            while not self.scheduler.has_room(request) and self._give_up_lookup(events):
                pass
            if not self.scheduler.has_room(request):
                victim = self.preempt_under_pressure()
                if victim is not None:
                    preempted = True
                    events.append(Preempted(victim))
                if not self.scheduler.has_room(request):
                    break
            events.append(Grown(request, self.grow(request)))
        return preempted

    def _promote_all(self, events: list[Event]) -> None:
        """Promote for whoever waits and would hit more than the host has. Again from the first, as long as anything is
        promoted: what one promotion evicts, or an admission did, may be what another request then finds below alone."""
        if not self.config.second_blocks:
            return
        again = True
        while again:
            again = False
            for request in self.requests:
                if self.can_promote(request):
                    job = self.promote(request)
                    events.append(Promoted(request, job.id, job.pairs))
                    again = True

    def _admit_all(self, events: list[Event]) -> None:
        """Admit whoever fits. If nobody does and nobody holds a table, so that no request will ever make room, only
        lookups can be in the way: they are given up until somebody fits."""
        while not self._admit_fitting(events):
            waited_for = bool(self.scheduler.pipeline) or any(request.table for request in self.requests.values())
            if waited_for or not self._give_up_lookup(events):
                return

    def _give_up_lookup(self, events: list[Event]) -> bool:
        """Release what the youngest request that has looked up keeps; it is found again or computed again. False if
        there is none: lookups are the first to go when blocks are short, before any request's work is undone."""
        for request in reversed(self.requests):
            if self.requests[request].pins is not None:
                self.release_lookup(request)
                events.append(LookupReleased(request))
                return True
        return False

    def _admit_fitting(self, events: list[Event]) -> bool:
        admitted = False
        growing = self.scheduler.growing()
        for number, request in self.requests.items():
            if growing:
                break
            if request.phase is Phase.WAITING and not request.deferred and not self.can_promote(number):
                try:
                    admission = self.scheduler.place(request)
                except OutOfBlocks:
                    continue
                events.append(Admitted(number, admission))
                admitted = True
                growing = self.scheduler.wants_block(number)
        return admitted

    def _require_bound(self) -> None:
        if not self.bound:
            raise NotBound("the device pool is not bound to the connector yet")
