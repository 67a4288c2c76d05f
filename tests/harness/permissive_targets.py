"""Engines that are right and choose otherwise than the reference: none of them may raise an alarm."""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence

from tests.harness.step_target import StepKVOffload

from kvmodel import actions as act
from kvoffload.block_pool import BlockPool
from kvoffload.config import Config
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.connectors.pinning import PinningConnector
from kvoffload.connectors.transfers import TransferConnector
from kvoffload.devices.ledger import Ledger, LedgerWorker
from kvoffload.engine import Engine
from kvoffload.ids import Block, JobId, Pair
from kvoffload.operations import Stream
from kvoffload.plan import LaunchPlan, PlannedShare
from kvoffload.request import Request
from kvoffload.scheduler import Scheduler
from kvoffload.step_report import Event
from kvoffload.stores.choice import Choice
from kvoffload.transfer_job import Direction
from kvproof.targets.outcome import Answer, Outcome


class Changed(StepKVOffload):
    """An engine whose parts can be replaced."""

    pool: type[BlockPool] = BlockPool
    scheduler: type[Scheduler] = Scheduler
    pinning: type[TransferConnector] = PinningConnector
    fencing: type[TransferConnector] = FencingConnector

    def create(self, config: Config) -> Engine:
        engine = Engine(config)
        kind = self.pinning if config.discipline == "pinning" else self.fencing
        engine.connector = kind.create(config)
        engine.connector.host = self.pool.of_size(config.host_blocks)
        engine.scheduler = self.scheduler(self.pool.of_size(config.device_blocks), engine.connector, {})
        engine.bind()
        return engine


class LastFreedFirst(BlockPool):
    __slots__ = ()

    def free_blocks(self) -> Iterator[Block]:
        return reversed(self.queue)

    def take(self, blocks: int) -> list[Block]:
        for block in list(self.free_blocks())[blocks - 1 :: -1]:
            self.queue.move_to_end(block, last=False)
        return BlockPool.take(self, blocks)


class TakesTheLastFreed(Changed):
    """Takes, and evicts, the block that was freed last, where the reference takes the one that was freed first."""

    pool = LastFreedFirst

    def view(self):
        pools = self.engine.device_pool, self.engine.host_pool
        device, host = (tuple(pool.free_blocks()) for pool in pools)
        return super().view()._replace(device_free=device, host_free=host)


class OneHitLess(Scheduler):
    __slots__ = ()

    def _need(self, request: Request) -> tuple[Sequence[Block], int, int]:
        hits = self.device.cache.run(request.prompt)[:-1]
        unreferenced = sum(not self.device.counts[block] for block in hits)
        return hits, len(request.prompt) - len(hits), self.device.free - unreferenced


class OneLoadLess(TransferConnector):
    __slots__ = ()

    def touch_matched(self, request: Request, num_computed_blocks: int) -> tuple[Block, ...]:
        matched = self.host.cache.run(request.prompt, num_computed_blocks)[:-1]
        self.host.touch(matched)
        return tuple(matched)


class PinningLessLoads(OneLoadLess, PinningConnector):
    __slots__ = ()


class FencingLessLoads(OneLoadLess, FencingConnector):
    __slots__ = ()


class UsesFewerHits(Changed):
    """Never uses the last block of what it could find on the device."""

    scheduler = OneHitLess


class LoadsLess(Changed):
    """Never uses the last block of what it could load."""

    pinning, fencing = PinningLessLoads, FencingLessLoads


class StoresSome(TransferConnector):
    __slots__ = ()

    def _choices(self, requests: Collection[Request], generation: int, kept: Container[Block]) -> Iterator[Choice]:
        destinations = self.host.free_blocks()
        for choice in super()._choices(requests, generation, kept):
            kept = [pair for pair in choice.pairs if pair.key % 3]
            pairs = tuple(Pair(pair.source, next(destinations), pair.key) for pair in kept)
            if pairs or choice.request is not None:
                yield Choice(choice.request, pairs, choice.cursor)


class PinningSome(StoresSome, PinningConnector):
    __slots__ = ()


class FencingSome(StoresSome, FencingConnector):
    __slots__ = ()


class StoresLess(Changed):
    """Passes over every third key."""

    pinning, fencing = PinningSome, FencingSome


class PinningFlush(PinningConnector):
    __slots__ = ()

    def _fence(
        self, shares: Sequence[PlannedShare], stores: Sequence[Pair], loads: Sequence[Pair]
    ) -> tuple[JobId, ...]:
        return tuple(job.id for job in self.jobs.values() if job.launched)


class FencingFlush(FencingConnector):
    __slots__ = ()

    def _fence(
        self, shares: Sequence[PlannedShare], stores: Sequence[Pair], loads: Sequence[Pair]
    ) -> tuple[JobId, ...]:
        for job in self.jobs.values():
            if job.launched and job.direction is Direction.STORE and job.id % 2:
                job.flush_ordered = True
        return super()._fence(shares, stores, loads)


class FlushesMore(Changed):
    """Under pinning every launch waits for all copies; under fencing for every second store."""

    pinning, fencing = PinningFlush, FencingFlush


class FlushesOnce(FlushesMore):
    """Orders each job flushed once, and says so once; its launches wait for it all the same."""

    def launching(self, plan: LaunchPlan) -> act.Launching:
        self.ordered = getattr(self, "ordered", frozenset[int]())
        launching = super().launching(plan)
        new = tuple(job for job in launching.flush if job not in self.ordered)
        self.ordered |= set(new)
        return launching._replace(flush=new)


class OneCopyStream(LedgerWorker):
    __slots__ = ()

    def ready(self, stream: Stream) -> bool:
        if stream is Stream.COMPUTE or not self.stores or not self.loads:
            return super().ready(stream)
        store_first = self.stores[0].job < self.loads[0].job
        return store_first == (stream is Stream.STORE) and super().ready(stream)


class CopiesOneByOne(StepKVOffload):
    """All copies of a worker run in one order, where the contract asks for no order between stores and loads."""

    def __init__(self, setting) -> None:
        super().__init__(setting)
        scope = setting.scope
        self.device = Ledger(
            scope.workers,
            0,
            True,
            [],
            [OneCopyStream.blank(scope.device_blocks, scope.host_blocks, 0) for _ in range(scope.workers)],
        )
        self.runtime = type(self.runtime)(self.engine, self.device)


class ServesAsItGoes(StepKVOffload):
    """Requests end when their output is handled and wake when their load is reported; a scheduling call tells of its
    launch first."""

    def schedule(self) -> Outcome:
        report = self.runtime.schedule()
        return Answer(None, tuple(self.told(report.events)))

    def told(self, events: Iterable[Event]) -> Iterator[act.Action]:
        actions = list(super().told(events))
        yield from sorted(actions, key=lambda action: not isinstance(action, act.Launch))

    def handle_output(self) -> Outcome:
        self.runtime.handle_output()
        ended = [request for request in self.engine.requests if self.engine.can_finish(request)]
        for request in ended:
            self.engine.finish(request)
        return Answer(None, tuple(map(act.Finish, ended)))

    def report(self, worker: int, job: int) -> Outcome:
        super().report(worker, job)
        return self.woken()

    def report_all(self, worker: int) -> Outcome:
        super().report_all(worker)
        return self.woken()

    def woken(self) -> Outcome:
        loaded = [request for request in self.engine.requests if self.engine.can_wake(request)]
        for request in loaded:
            self.engine.wake(request)
        return Answer(None, tuple(map(act.Wake, loaded)))


class InItsOwnWay(TakesTheLastFreed, FlushesOnce, ServesAsItGoes):
    """Much of it together."""

    scheduler = OneHitLess
    pinning = type("Pinning", (StoresSome, PinningFlush), {"__slots__": ()})
    fencing = type("Fencing", (StoresSome, FencingFlush), {"__slots__": ()})


ALL = (
    TakesTheLastFreed,
    UsesFewerHits,
    LoadsLess,
    StoresLess,
    FlushesMore,
    FlushesOnce,
    CopiesOneByOne,
    ServesAsItGoes,
    InItsOwnWay,
)
