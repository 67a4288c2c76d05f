"""kvoffload as a target: its engine and workers on the `ledger` device, or gated on `host` or `cuda`, with bytes."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from kvmodel import Action, State
from kvmodel import actions as act
from kvmodel.contents import TORN, UNWRITTEN
from kvmodel.request import ABSENT, DONE, DRAINING, LOADING, RUNNING, WAITING, Pins
from kvmodel.request import Request as ModelRequest
from kvmodel.setting import Setting
from kvmodel.streams import STREAMS
from kvmodel.tiers import TIERS
from kvmodel.transfer_job import ABANDONED, LIVE, NONE
from kvmodel.transfer_job import Pair as ModelPair
from kvoffload.completions.marks import MARKED, NO_MARK, WorkerMarks
from kvoffload.config import Config
from kvoffload.devices.device import Device, DiesOnDemand, FailsOnDemand
from kvoffload.devices.ledger import Ledger as LedgerDevice
from kvoffload.engine import Engine
from kvoffload.errors import DoubleFree, Hang, KVOffloadError, UnknownBlock
from kvoffload.ids import Meaning, Pair, Survivors, Tiers
from kvoffload.operations import Content, Stream, Tier, Unreadable
from kvoffload.plan import LaunchPlan
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.scheduler import Admission, Deferred
from kvoffload.step_report import (
    Admitted,
    Grown,
    Launched,
    LookupReleased,
    Preempted,
    Promoted,
    StepReport,
    Woken,
)
from kvoffload.transfer_job import Direction, JobState
from kvproof.search.canonical import Renaming
from kvproof.targets import kvoffload_control, kvoffload_marks, kvoffload_snapshots, kvoffload_state
from kvproof.targets.command import Command
from kvproof.targets.kvoffload_events import nothing, replayed
from kvproof.targets.kvoffload_marks import COPIES
from kvproof.targets.outcome import Answer, Crashed, Outcome, Refused
from kvproof.targets.view import JobView, ShareView, View

if TYPE_CHECKING:
    from kvoffload.devices.cuda import Cuda as CudaDevice
    from kvoffload.devices.host import Host as HostDevice

_PHASES = {
    Phase.WAITING: WAITING,
    Phase.LOADING: LOADING,
    Phase.RUNNING: RUNNING,
    Phase.DRAINING: DRAINING,
    Phase.DONE: DONE,
}
_STREAMS = {stream: number for number, stream in enumerate(Stream)}
_VIEWS = {JobState.LIVE: LIVE, JobState.ABANDONED: ABANDONED}
_ABSENT = ModelRequest(ABSENT)
PATIENCE_S = 60.0
"""The deadline of transfers, where they have one. Nothing here looks at a clock: commands say when it has passed."""


def config_of(setting: Setting) -> Config:
    """The engine's configuration for a contract and a scope."""
    contract, scope = setting.contract, setting.scope
    return Config(
        discipline=contract.discipline,
        device_blocks=scope.device_blocks,
        host_blocks=scope.host_blocks,
        workers=scope.workers,
        store_mode=contract.store_mode,
        output_from=contract.output_from,
        depth=contract.depth,
        lazy_window=scope.lazy_window,
        admission=contract.admission,
        reports=contract.reports,
        repeats=scope.repeats,
        window=scope.window,
        deadline=PATIENCE_S if contract.expires else None,
        second_blocks=scope.second_blocks,
    )


def _in_key(held: Content | Unreadable, generation: int) -> int:
    """What a block holds, as the machine writes it."""
    if isinstance(held, Content):
        return held.key if held.generation == generation else -held.key
    return UNWRITTEN if held is Unreadable.UNWRITTEN else TORN


class KVOffload:
    """What the devices have in common. `device` says where it runs; see `Ledger`, `Host` and `Cuda`."""

    exact = True
    disciplines: ClassVar[tuple[str, ...]] = ("pinning", "fencing")
    tiers: ClassVar[tuple[str, ...]] = TIERS
    deaths = True
    second_tier = True

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.device = self._device(setting)
        self._begin()

    def _begin(self) -> None:
        """A new engine on the device; its events begin anew."""
        self.config = replace(config_of(self.setting), events=True)
        self.runtime = Runtime(self.create(self.config), self.device)
        self.announced = nothing(self.setting.scope.second_blocks)

    def create(self, config: Config) -> Engine:
        """The engine under check; a subclass may give it another connector."""
        return Engine.create(config)

    def _device(self, setting: Setting) -> Device:
        raise TypeError("use Ledger, Host or Cuda")

    @property
    def engine(self) -> Engine:
        return self.runtime.engine

    def close(self) -> None:
        self.device.close()

    # Commands.

    def perform(self, command: Command) -> Outcome:
        """Carry out one command, and take in the events that came of it."""
        outcome = self._carried_out(command)
        events = self.engine.take_events()
        if events:
            self.announced = replayed(self.announced, events)
        return outcome

    def _carried_out(self, command: Command) -> Outcome:
        """One command on the runtime. Typed refusals are outcomes; a double free nobody asked for is not."""
        try:
            answer = self._PERFORM[command.verb](self, *command.args)
        except (DoubleFree, UnknownBlock) as error:
            if command.verb == "free_twice":
                return Refused(f"{type(error).__name__}: {error}")
            return Crashed(type(error).__name__, str(error))
        except Hang as error:
            return Crashed("Hang", str(error))
        except KVOffloadError as error:
            return Refused(f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 (whatever a broken target raises is what we are here to find)
            return Crashed(type(error).__name__, str(error))
        if self.device.misreads:
            misread = self.device.misreads[0]
            return Crashed("Misread", f"worker {misread.worker} expected {misread.expected} and found {misread.found}")
        return answer

    def _submit(self, request: int) -> Answer:
        self.engine.submit(request, self.setting.prompt_keys[request], self.setting.total_keys[request])
        return Answer()

    def _lookup(self, request: int) -> Outcome:
        found = self.engine.lookup(request)
        if isinstance(found, Deferred):
            return Refused(f"Deferred: {found.cause}")
        return Answer(found, (act.Lookup(request, (found.device_blocks, found.host_blocks)),))

    def _release_lookup(self, request: int) -> Answer:
        self.engine.release_lookup(request)
        return Answer()

    def _promote(self, request: int) -> Answer:
        job = self.engine.promote(request)
        return Answer(None, (_promoted(request, job.pairs),))

    def _admit(self, request: int) -> Answer:
        return Answer(None, (_admitted(request, self.engine.admit(request)),))

    def _grow(self, request: int) -> Answer:
        return Answer(None, (act.Grow(request, (self.engine.grow(request),)),))

    def _preempt_pressure(self) -> Answer:
        victim = self.engine.preempt_under_pressure()
        return Answer(victim, () if victim is None else (act.PreemptUnderPressure(victim),))

    def _launch(self) -> Answer:
        return Answer(None, (self._launched(self.runtime.launch()),))

    def _schedule(self) -> Answer:
        report: StepReport = self.runtime.schedule()
        observed: list[Action] = []
        for event in report.events:
            match event:
                case Woken(request):
                    observed.append(act.Wake(request))
                case Preempted(request):
                    observed.append(act.PreemptUnderPressure(request))
                case Grown(request, block):
                    observed.append(act.Grow(request, (block,)))
                case LookupReleased(request):
                    observed.append(act.ReleaseLookup(request))
                case Promoted(request, _, pairs):
                    observed.append(_promoted(request, pairs))
                case Admitted(request, admission):
                    observed.append(_admitted(request, admission))
                case Launched(plan):
                    observed.append(self._launched(plan))
                case _:
                    raise TypeError(f"a scheduling call reported {event!r}")
        return Answer(None, tuple(observed))

    def _launched(self, plan: LaunchPlan) -> act.Launch:
        """The choices of a launch. Cursors are the engine's own affair; `explain` works them out."""
        computes = tuple([(share.request, share.first, share.first + len(share.writes)) for share in plan.shares])
        stores = tuple(
            [(self._waiting_for(copy.job), tuple([ModelPair(*pair) for pair in copy.pairs])) for copy in plan.stores]
        )
        cascade = tuple([ModelPair(*pair) for copy in plan.cascades for pair in copy.pairs])
        return act.Launch(act.Launching(computes, stores, (), plan.flush, cascade))

    def _waiting_for(self, job: int) -> int:
        request = self.engine.jobs[job].request
        return NONE if request is None else request

    def _run(self, worker: int, stream: str) -> Answer:
        self.device.run(worker, Stream(stream))
        return Answer()

    def _report(self, worker: int, job: int) -> Answer:
        self.runtime.deliver(worker, [job])
        return Answer()

    def _report_mark(self, worker: int, stream: str, mark: int) -> Answer:
        self.runtime.deliver_mark(worker, COPIES[stream], mark)
        return Answer()

    def _report_all(self, worker: int) -> Answer:
        if self.setting.contract.marks:
            for direction in MARKED:
                mark = self.runtime.workers[worker].get_mark(direction)
                if mark != NO_MARK:
                    self.runtime.deliver_mark(worker, direction, mark)
            return Answer()
        self.runtime.deliver(worker, sorted(self.device.copied(worker)))
        return Answer()

    def _wake(self, request: int) -> Answer:
        self.engine.wake(request)
        return Answer()

    def _handle_output(self) -> Answer:
        self.runtime.handle_output()
        return Answer()

    def _finish(self, request: int) -> Answer:
        self.engine.finish(request)
        return Answer()

    def _stop(self, request: int) -> Answer:
        self.engine.stop(request)
        return Answer()

    def _preempt(self, request: int) -> Answer:
        self.engine.preempt(request)
        return Answer()

    def _abort(self, request: int) -> Answer:
        self.engine.abort(request)
        return Answer()

    def _reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers = "all") -> Answer:
        return Answer(self.engine.reset(meaning, requests, tiers))

    def _expire(self, job: int) -> Answer:
        self.engine.expire(job)
        return Answer()

    def _declare_dead(self, worker: int) -> Answer:
        self.engine.declare_dead(worker)
        return Answer()

    def _die(self, worker: int) -> Answer:
        if not isinstance(self.device, DiesOnDemand):
            raise TypeError(f"no worker can be made to die on {type(self.device).__name__}")
        self.device.die(worker)
        return Answer()

    def _fail_copy(self, worker: int, stream: str) -> Answer:
        return self._fail(worker, stream, None)

    def _fail_block(self, worker: int, stream: str, position: int) -> Answer:
        return self._fail(worker, stream, (position,))

    def _fail(self, worker: int, stream: str, pairs: tuple[int, ...] | None) -> Answer:
        if not isinstance(self.device, FailsOnDemand):
            raise TypeError(f"no copy can be made to fail on {type(self.device).__name__}")
        self.device.run_failing(worker, Stream(stream), pairs)
        return Answer()

    def _duplicate_report(self, worker: int, job: int) -> Answer:
        self.engine.report(worker, [job])
        return Answer()

    def _lose_report(self, worker: int, job: int) -> Answer:
        self.device.collect(worker, job)
        return Answer()

    def _repeat_mark(self, worker: int, stream: str, which: str) -> Answer:
        kvoffload_marks.repeated(self.engine, self.runtime.workers[worker], COPIES[stream], which)
        return Answer()

    def _lose_mark(self, worker: int, stream: str) -> Answer:
        self.runtime.workers[worker].get_mark(COPIES[stream])
        return Answer()

    def _forge_report(self, worker: int) -> Answer:
        never = self.engine.connector.next_job
        if self.setting.contract.marks:
            self.engine.report_mark(worker, Direction.STORE, never)
        else:
            self.engine.report(worker, [never])
        return Answer()

    def _free_twice(self, what: str) -> Answer:
        if what == "request":
            done = next(r.id for r in self.engine.requests.values() if r.phase is Phase.DONE)
            self.engine.abort(done)
        else:
            engine = self.engine
            pool = {"device": engine.device_pool, "host": engine.host_pool, "second": engine.second_pool}[what]
            pool.release([next(iter(pool.free_blocks()))])
        return Answer()

    _PERFORM: ClassVar[dict[str, Callable[..., Outcome]]] = {
        "submit": _submit,
        "lookup": _lookup,
        "release_lookup": _release_lookup,
        "promote": _promote,
        "admit": _admit,
        "grow": _grow,
        "preempt_pressure": _preempt_pressure,
        "launch": _launch,
        "schedule": _schedule,
        "run": _run,
        "report": _report,
        "report_mark": _report_mark,
        "report_all": _report_all,
        "wake": _wake,
        "handle_output": _handle_output,
        "finish": _finish,
        "stop": _stop,
        "preempt": _preempt,
        "abort": _abort,
        "reset": _reset,
        "expire": _expire,
        "declare_dead": _declare_dead,
        "die": _die,
        "fail_copy": _fail_copy,
        "fail_block": _fail_block,
        "duplicate_report": _duplicate_report,
        "lose_report": _lose_report,
        "repeat_mark": _repeat_mark,
        "lose_mark": _lose_mark,
        "forge_report": _forge_report,
        "free_twice": _free_twice,
    }

    # What is seen.

    def view(self) -> View:
        engine = self.engine
        device, host, second = engine.device_pool, engine.host_pool, engine.second_pool
        generation = engine.scheduler.generation
        known = engine.requests
        requests: list[ModelRequest] = []
        for number in range(len(self.setting.prompt_keys)):
            request = known.get(number)
            if request is None:
                requests.append(_ABSENT)
                continue
            pins = request.pins
            requests.append(
                ModelRequest(
                    _PHASES[request.phase],
                    tuple(request.table),
                    request.computed,
                    request.stored,
                    None if pins is None else Pins(pins.device, pins.host),
                    tuple(sorted(request.jobs)),
                    bool(request.table) and request.generation != generation,
                    request.returns,
                    request.promoted,
                )
            )
        shares = tuple(
            [
                ShareView(number, share.blocks, share.first, share.left, position)
                for position, step in enumerate(engine.scheduler.pipeline)
                for number, share in step.shares.items()
            ]
        )
        contents = (
            self._contents(Tier.DEVICE, device.size, generation),
            self._contents(Tier.HOST, host.size, generation),
            *([self._contents(Tier.SECOND, second.size, generation)] if second.size else []),
        )
        return View(
            tuple(device.counts),
            tuple(device.cache.keys),
            tuple(device.free_blocks()),
            tuple(host.counts),
            tuple(host.cache.keys),
            tuple(host.free_blocks()),
            tuple(second.counts),
            tuple(second.cache.keys),
            tuple(second.free_blocks()),
            tuple(requests),
            tuple(
                [
                    JobView(
                        job.id,
                        kvoffload_state.DIRECTIONS[job.direction],
                        NONE if job.request is None else job.request,
                        tuple([ModelPair(*pair) for pair in job.pairs]),
                        _VIEWS[job.state],
                        tuple(sorted(job.awaiting)),
                        tuple(sorted(job.failed)),
                    )
                    for job in engine.jobs.values()
                    if job.state is not JobState.FORGOTTEN
                ]
            ),
            shares,
            tuple([(worker, _STREAMS[stream]) for worker, stream in self.device.runnable()]),
            contents,
            self.announced,
            engine.has_work(),
        )

    def _contents(self, tier: Tier, blocks: int, generation: int) -> tuple[tuple[int, ...], ...]:
        content = self.device.content
        return tuple(
            [
                tuple([_in_key(content(tier, worker, block), generation) for block in range(blocks)])
                for worker in range(self.device.workers)
            ]
        )

    def offers(self) -> frozenset[tuple[object, ...]]:
        engine = self.engine
        found: list[tuple[object, ...]] = []
        for number in engine.requests:
            if self.setting.scope.lookups and engine.can_lookup(number):
                found.append(("Lookup", number, None))
            if self.setting.scope.second_blocks and engine.can_promote(number):
                found.append(("Promote", number, None))
            if engine.can_admit(number) and (
                not self.setting.scope.lookups or engine.requests[number].pins is not None
            ):
                found.append(("Admit", number, None))
            if engine.can_grow(number):
                found.append(("Grow", number, None))
            if engine.can_wake(number):
                found.append(("Wake", number))
            if engine.can_finish(number):
                found.append(("Finish", number))
        if self.runtime.can_launch():
            found.append(("Launch", None))
        if self.runtime.can_handle_output():
            found.append(("HandleOutput",))
        victim = engine.pressure_victim()
        if victim is not None:
            found.append(("PreemptUnderPressure", victim))
        return frozenset(found)


class Ledger(KVOffload):
    """kvoffload on the ledger device: symbolic contents, no threads, and all of its state can be copied out."""

    device: LedgerDevice

    def _device(self, setting: Setting) -> Device:
        scope = setting.scope
        return LedgerDevice.create(
            scope.workers, scope.device_blocks, scope.host_blocks, gated=True, second_blocks=scope.second_blocks
        )

    def _contents(self, tier: Tier, blocks: int, generation: int) -> tuple[tuple[int, ...], ...]:
        """The same without a call for each block: half of the commands of a whole check end here."""
        return tuple(
            [tuple([_in_key(held, generation) for held in shard.memory(tier)]) for shard in self.device.shards]
        )

    def save(self) -> Hashable:
        assert isinstance(self.device, LedgerDevice)
        whole = kvoffload_snapshots.Kvoffload(self.config, self.engine, self.device, self._marks(), self.announced)
        return kvoffload_snapshots.saved(whole)

    def restore(self, snapshot: Hashable) -> None:
        """Continue from a snapshot that `save` of the same setting has made in this process."""
        _, engine, self.device, marks, self.announced = kvoffload_snapshots.restored(self.config, snapshot)
        self.runtime = Runtime(engine, self.device, marks or None)

    def own_state(self, view: View) -> State:
        return kvoffload_state.own_state(self.setting, view, self.engine, self.device, self._marks())

    def _marks(self) -> list[WorkerMarks]:
        return [worker.marks for worker in self.runtime.workers if worker.marks is not None]

    def control(self, renaming: Renaming) -> Hashable:
        return kvoffload_control.canonical(self.engine, self.device, self._marks(), renaming)

    def control_without(
        self, renaming: Renaming, late: Mapping[int, frozenset[int]]
    ) -> tuple[Hashable, tuple[Hashable, ...]]:
        control = kvoffload_control.canonical(self.engine, self.device, self._marks(), renaming, late)
        return control, kvoffload_control.known_of(self.engine, self.device, renaming, late)


class Host(KVOffload):
    """kvoffload on the host device, gated: real threads, real copies, every byte checked.

    layers, block_bytes  of the KV tensors (count; bytes)
    """

    device: "HostDevice | CudaDevice"
    layers = 2
    block_bytes = 64

    def restart(self) -> None:
        """A new engine on the same threads and tensors, wiped."""
        self.device.wipe()
        self._begin()

    def _device(self, setting: Setting) -> Device:
        from kvoffload.devices.host import Host as HostDevice  # only now: it imports torch

        scope = setting.scope
        return HostDevice(
            scope.workers,
            scope.device_blocks,
            scope.host_blocks,
            layers=self.layers,
            block_bytes=self.block_bytes,
            gated=True,
            second_blocks=scope.second_blocks,
        )


class Cuda(Host):
    """kvoffload on CUDA, gated: real streams, real copies between host and GPU, every byte checked. What goes between
    the host and a file is copied by threads.

    Raises RuntimeError where there is no CUDA, ValueError where its streams cannot be gated.
    """

    def _device(self, setting: Setting) -> Device:
        from kvoffload.devices.cuda import Cuda as CudaDevice  # only now: they import torch
        from kvoffload.devices.cuda_torch import driver

        scope = setting.scope
        return CudaDevice(
            driver(),
            scope.workers,
            scope.device_blocks,
            scope.host_blocks,
            layers=self.layers,
            block_bytes=self.block_bytes,
            gated=True,
            second_blocks=scope.second_blocks,
        )


def _promoted(request: int, pairs: tuple[Pair, ...]) -> act.Promote:
    return act.Promote(request, tuple([ModelPair(*pair) for pair in pairs]))


def _admitted(request: int, admission: Admission) -> act.Admit:
    sources = tuple([pair.source for pair in admission.pairs])
    return act.Admit(request, act.Admission(admission.device_blocks, sources, admission.fresh))


assert tuple(str(stream) for stream in _STREAMS) == STREAMS
