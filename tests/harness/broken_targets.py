"""The step target with a bug in its engine, or a lie in its adapter: each is caught under the name of a property."""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence

from tests.harness.permissive_targets import Changed
from tests.harness.step_target import StepKVOffload

from kvmodel import actions as act
from kvoffload import ordering
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.connectors.pinning import PinningConnector
from kvoffload.connectors.transfers import TransferConnector
from kvoffload.ids import Block, JobId, Meaning, Pair, Survivors, Tiers
from kvoffload.plan import LaunchPlan, PlannedShare
from kvoffload.request import Phase, Request
from kvoffload.scheduler import Scheduler
from kvoffload.step_report import Event
from kvoffload.stores.choice import Choice
from kvoffload.worker import Worker
from kvproof.targets.outcome import Answer, Outcome
from kvproof.targets.view import View


class StaleReferences(StepKVOffload):
    """The adapter shows references as they were a command ago."""

    shown: tuple[int, ...] | None = None

    def view(self) -> View:
        view = super().view()
        before, self.shown = self.shown, view.device_refs
        return view if before is None else view._replace(device_refs=before)


class Unfenced(Worker):
    """Its operations wait for no copies."""

    def launch(self, plan: LaunchPlan) -> None:
        super().launch(plan._replace(flush=()))


class DropsTheFence(StepKVOffload):
    """The scheduler orders jobs flushed, and the workers do not wait for them."""

    def __init__(self, setting) -> None:
        super().__init__(setting)
        self.runtime.workers[:] = [Unfenced(worker.rank, self.device) for worker in self.runtime.workers]


class HidesTheFence(DropsTheFence):
    """The same, seen by what is read alone."""

    def view(self) -> View:
        return View()


class NoFlush(FencingConnector):
    __slots__ = ()

    def _fence(
        self, shares: Sequence[PlannedShare], stores: Sequence[Pair], loads: Sequence[Pair]
    ) -> tuple[JobId, ...]:
        return ()


class FlushesNothing(Changed):
    """A launch that touches blocks of running copies orders nothing flushed."""

    fencing = NoFlush


class AlwaysTrue(StepKVOffload):
    """A reset answers True, whatever is under way."""

    def reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers = "all") -> Outcome:
        super().reset(meaning, requests, tiers)
        return Answer(True)


class AlwaysFalse(StepKVOffload):
    """A reset answers False on an idle engine too."""

    def reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers = "all") -> Outcome:
        super().reset(meaning, requests, tiers)
        return Answer(False)


class ForgetsToAnswer(StepKVOffload):
    """The adapter drops the answer of a reset."""

    def reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers = "all") -> Outcome:
        super().reset(meaning, requests, tiers)
        return Answer()


class TrustingScheduler(Scheduler):
    __slots__ = ()

    def _need(self, request: Request) -> tuple[Sequence[Block], int, int]:
        hits, need, available = super()._need(request)
        if hits or not available:
            return hits, need, available
        return [next(iter(self.device.free_blocks()))], need - 1, available - 1


class HitsWhatIsNotCached(Changed):
    """Takes a free block for the first block of a prompt that it has not."""

    scheduler = TrustingScheduler


class StoresTooEarly(TransferConnector):
    __slots__ = ()

    def _choices(self, requests: Collection[Request], generation: int, kept: Container[Block]) -> Iterator[Choice]:
        for request in requests:
            if request.phase is Phase.LOADING and not request.stored and request.generation == generation:
                key = request.prompt[-1]
                destination = next(self.host.free_blocks(), None)
                if key not in self.storing and key not in self.host.cache.blocks and destination is not None:
                    yield Choice(request, (Pair(request.table[-1], destination, key),), 1)
                    return
        yield from super()._choices(requests, generation, kept)


class PinningTooEarly(StoresTooEarly, PinningConnector):
    __slots__ = ()


class FencingTooEarly(StoresTooEarly, FencingConnector):
    __slots__ = ()


class StoresBeforeCompute(Changed):
    """Stores a block of a request that still loads, which nobody has computed."""

    pinning, fencing = PinningTooEarly, FencingTooEarly


class Hasty(Worker):
    """Its stores do not wait for the compute of their launch."""

    def wait_for_save(self) -> None:
        plan = self._launching()
        for store in ordering.stores(plan._replace(step=None)):
            self.device.enqueue(self.rank, store)
        self._plan = None


class OvertakesCompute(StepKVOffload):
    """A store may run before the compute that writes what it reads."""

    def __init__(self, setting) -> None:
        super().__init__(setting)
        self.runtime.workers[:] = [Hasty(worker.rank, self.device) for worker in self.runtime.workers]


class NoPins(PinningConnector):
    __slots__ = ()

    def _own(self, job) -> None:
        pass

    def _disown(self, job) -> None:
        self.host.release(job.host_blocks)


class PinsNothing(Changed):
    """A job has no references on its device blocks."""

    pinning = NoPins


class TwoLaunches(StepKVOffload):
    """The adapter tells of each launch twice."""

    def told(self, events: Iterable[Event]) -> Iterator[act.Action]:
        actions = list(super().told(events))
        yield from (*actions, *(action for action in actions if isinstance(action, act.Launch)))
