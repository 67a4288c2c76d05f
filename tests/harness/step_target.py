"""An adapter as others would write one: kvoffload driven by `Runtime.schedule`, which decides a whole step at once.

It shows part of what there is to see (no free queues, no contents), and makes no inferences: what a call did it reads
from the report that the engine gives of it.
"""

from collections.abc import Iterable

from kvmodel import actions as act
from kvmodel.request import ABSENT, DONE, DRAINING, LOADING, RUNNING, WAITING, Pins, Request
from kvmodel.setting import Setting
from kvmodel.streams import STREAMS
from kvmodel.transfer_job import ABANDONED, LIVE, LOAD, NONE, STORE
from kvmodel.transfer_job import Pair as BlockPair
from kvoffload.config import Config
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import KVOffloadError
from kvoffload.ids import Meaning, Pair, Survivors, Tiers
from kvoffload.operations import Stream
from kvoffload.plan import LaunchPlan
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.step_report import Admitted, Event, Grown, Launched, LookupReleased, Preempted, Woken
from kvoffload.transfer_job import Direction, JobState
from kvproof.targets.outcome import Answer, Crashed, Outcome
from kvproof.targets.target import StepTarget
from kvproof.targets.view import JobView, View

PHASES = {
    Phase.WAITING: WAITING,
    Phase.LOADING: LOADING,
    Phase.RUNNING: RUNNING,
    Phase.DRAINING: DRAINING,
    Phase.DONE: DONE,
}
DIRECTIONS = {Direction.STORE: STORE, Direction.LOAD: LOAD}
VIEWS = {JobState.LIVE: LIVE, JobState.ABANDONED: ABANDONED}


class StepKVOffload(StepTarget):
    """kvoffload on the ledger device. A request ends in the first scheduling call that finds it complete."""

    disciplines = ("pinning", "fencing")
    verbs = StepTarget.verbs | {"duplicate_report", "lose_report", "forge_report", "free_twice"}
    refusals = (KVOffloadError,)

    def __init__(self, setting: Setting) -> None:
        contract, scope = setting.contract, setting.scope
        config = Config(
            discipline=contract.discipline,
            device_blocks=scope.device_blocks,
            host_blocks=scope.host_blocks,
            workers=scope.workers,
            store_mode=contract.store_mode,
            output_from=contract.output_from,
            depth=contract.depth,
            lazy_window=scope.lazy_window,
            admission=contract.admission,
        )
        self.setting = setting
        self.device = Ledger.create(scope.workers, scope.device_blocks, scope.host_blocks)
        self.engine = self.create(config)
        self.runtime = Runtime(self.engine, self.device)

    def create(self, config: Config) -> Engine:
        """The engine; other targets of these tests change it."""
        return Engine.create(config)

    # The client.

    def submit(self, request: int) -> Outcome:
        self.engine.submit(request, self.setting.prompt_keys[request], self.setting.total_keys[request])
        return Answer()

    def preempt(self, request: int) -> Outcome:
        self.engine.preempt(request)
        return Answer()

    def abort(self, request: int) -> Outcome:
        self.engine.abort(request)
        return Answer()

    def reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers = "all") -> Outcome:
        return Answer(self.engine.reset(meaning, requests, tiers))

    # The scheduler.

    def schedule(self) -> Outcome:
        ended = [request for request in self.engine.requests if self.engine.can_finish(request)]
        for request in ended:
            self.engine.finish(request)
        report = self.runtime.schedule()
        return Answer(None, (*map(act.Finish, ended), *self.told(report.events)))

    def told(self, events: Iterable[Event]) -> Iterable[act.Action]:
        for event in events:
            match event:
                case Woken(request):
                    yield act.Wake(request)
                case Preempted(request):
                    yield act.PreemptUnderPressure(request)
                case Grown(request, block):
                    yield act.Grow(request, (block,))
                case LookupReleased(request):
                    yield act.ReleaseLookup(request)
                case Admitted(request, admission):
                    sources = tuple(pair.source for pair in admission.pairs)
                    yield act.Admit(request, act.Admission(admission.device_blocks, sources, admission.fresh))
                case Launched(plan):
                    yield act.Launch(self.launching(plan))

    def launching(self, plan: LaunchPlan) -> act.Launching:
        computes = tuple(
            (share.request, len(share.reads), len(share.reads) + len(share.writes)) for share in plan.shares
        )
        stores = tuple((self.waiting_for(copy.job), pairs_of(copy.pairs)) for copy in plan.stores)
        return act.Launching(computes, stores, (), plan.flush)

    def waiting_for(self, job: int) -> int:
        request = self.engine.jobs[job].request
        return NONE if request is None else request

    def handle_output(self) -> Outcome:
        self.runtime.handle_output()
        return Answer()

    # The workers.

    def run(self, worker: int, stream: str) -> Outcome:
        self.device.run(worker, Stream(stream))
        if self.device.misreads:
            return Crashed("Misread", f"{self.device.misreads[0]}")
        return Answer()

    def report(self, worker: int, job: int) -> Outcome:
        self.runtime.deliver(worker, [job])
        return Answer()

    def report_all(self, worker: int) -> Outcome:
        self.runtime.deliver(worker, self.device.copied(worker))
        return Answer()

    # The faults.

    def duplicate_report(self, worker: int, job: int) -> Outcome:
        self.engine.report(worker, [job])
        return Answer()

    def lose_report(self, worker: int, job: int) -> Outcome:
        self.device.collect(worker, job)
        return Answer()

    def forge_report(self, worker: int) -> Outcome:
        self.engine.report(worker, [1_000_000])
        return Answer()

    def free_twice(self, what: str) -> Outcome:
        if what == "request":
            self.engine.abort(next(r.id for r in self.engine.requests.values() if r.phase is Phase.DONE))
        else:
            pool = self.engine.device_pool if what == "device" else self.engine.host_pool
            pool.release([next(iter(pool.free_blocks()))])
        return Answer()

    # What is seen.

    def view(self) -> View:
        device, host = self.engine.device_pool, self.engine.host_pool
        return View(
            device_refs=tuple(device.counts),
            device_keys=tuple(device.cache.keys),
            host_refs=tuple(host.counts),
            host_keys=tuple(host.cache.keys),
            requests=tuple(map(self.request, range(len(self.setting.prompt_keys)))),
            jobs=tuple(
                JobView(
                    job.id,
                    DIRECTIONS[job.direction],
                    self.waiting_for(job.id),
                    pairs_of(job.pairs),
                    VIEWS[job.state],
                    tuple(sorted(job.awaiting)),
                )
                for job in self.engine.jobs.values()
                if job.state in VIEWS
            ),
            runnable=tuple((worker, STREAMS.index(stream)) for worker, stream in self.device.runnable()),
        )

    def request(self, number: int) -> Request:
        request = self.engine.requests.get(number)
        if request is None:
            return Request(ABSENT)
        return Request(
            PHASES[request.phase],
            tuple(request.table),
            request.computed,
            request.stored,
            None if request.pins is None else Pins(*request.pins),
            tuple(sorted(request.jobs)),
            bool(request.table) and request.generation != self.engine.scheduler.generation,
            request.returns,
        )


def pairs_of(pairs: Iterable[Pair]) -> tuple[BlockPair, ...]:
    return tuple(BlockPair(*pair) for pair in pairs)
