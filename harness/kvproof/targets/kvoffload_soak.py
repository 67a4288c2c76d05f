"""kvoffload, soaked: a real runtime on a free-running device, with books beside it and its bytes looked at."""

import pickle
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from kvmodel.scope import sequences
from kvoffload.config import Config
from kvoffload.engine import Engine
from kvoffload.errors import DoubleFree, KVOffloadError, UnknownJob, UnknownRequest
from kvoffload.ids import NO_BLOCK, Meaning, Survivors, Tiers
from kvoffload.operations import Content, Operation, Stream, Tier, Unreadable
from kvoffload.plan import LaunchPlan
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.step_report import Admitted, Launched, Preempted, Promoted, StepReport
from kvoffload.transfer_job import Direction
from kvproof.targets.command import Command, request_name
from kvproof.targets.kvoffload_events import nothing, replayed
from kvproof.targets.kvoffload_marks import COPIES, has_taken_in, repeated
from kvproof.targets.kvoffload_soak_books import BookedJob, Books, pools_of
from kvproof.targets.kvoffload_soak_device import open_device
from kvproof.targets.kvoffload_soak_faults import FailingCopies
from kvproof.targets.kvoffload_soak_notes import note
from kvproof.targets.kvoffload_soak_refusals import REFUSALS, changed, raised
from kvproof.targets.soaked import Setting, Soaked, Violation

STIR_S: Final = 0.0002
"""The longest wait for a stream to begin something."""

REMEMBERED: Final = 40
"""How many reports are remembered, to be repeated."""

KEPT_ENDED: Final = 3
"""How many requests that have ended the engine is left with, so that commands meet some."""

COPIED: Final = {
    Stream.STORE: "stored",
    Stream.LOAD: "loaded",
    Stream.CASCADE: "cascaded",
    Stream.PROMOTION: "promoted",
}
"""How the counts call the blocks that were copied on each stream."""

DEADLINE_S: Final = 1.0
"""The deadline of transfers, where they have one. Nothing here looks at a clock: commands say when it has passed."""

_Answer = TypeVar("_Answer")


class KVOffload:
    """One engine with its device, from creation to `close`. It is a `Soaked`; see there.

    All of it runs on one thread, but for `_began`, which the streams' own threads call on `host`; on `cuda` it is
    called when an operation was seen to have run.
    """

    def __init__(self, setting: Setting) -> None:
        contract, scope = setting.contract, setting.scope
        self.counts: Counter[str] = Counter()
        self._scope = scope
        self._keys = sequences(scope)
        self._books = Books(contract, scope.workers, self._keys)
        self._failing = FailingCopies(setting.failing)
        self._log: list[tuple[Command, object]] = []
        self._at: int | None = None
        self._reports: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)
        self._stir = threading.Event()
        self._may_stall = setting.device == "host"
        self._stalled: dict[int, threading.Event] = {}
        self._engine = Engine.create(
            Config(
                contract.discipline,
                scope.device_blocks,
                scope.host_blocks,
                scope.workers,
                contract.store_mode,
                contract.output_from,
                contract.depth,
                scope.lazy_window,
                contract.admission,
                contract.reports,
                scope.repeats,
                events=True,
                window=scope.window,
                deadline=DEADLINE_S if contract.expires else None,
                second_blocks=scope.second_blocks,
            )
        )
        self._announced = nothing(scope.second_blocks)
        self._device = open_device(setting, self._began, self._failing)
        self._runtime = Runtime(self._engine, self._device)
        self._verbs: Mapping[str, Callable[..., object]] = {
            "submit": self._submit,
            "preempt": partial(self._leave, self._engine.preempt),
            "abort": partial(self._leave, self._engine.abort),
            "reset": self._reset,
            "promote": self._promote,
            "lookup": self._engine.lookup,
            "release_lookup": self._engine.release_lookup,
            "admit": self._admit,
            "grow": self._engine.grow,
            "preempt_pressure": self._preempt_under_pressure,
            "launch": self._launch,
            "finish": self._finish,
            "stop": self._stop,
            "schedule": self._schedule,
            "wake": self._engine.wake,
            "handle_output": self._runtime.handle_output,
            "duplicate_report": self._duplicate_report,
            "repeat_mark": self._repeat_mark,
            "lose_mark": self._lose_mark,
            "lose_report": self._lose_report,
            "expire": self._expire,
            "forge_report": self._forge_report,
            "free_twice": self._free_twice,
        }

    # Driving.

    def perform(self, command: Command) -> bool:
        verb, args = command
        refusals = REFUSALS.get(verb, ())
        before = pickle.dumps(self._engine, pickle.HIGHEST_PROTOCOL) if refusals else b""
        position = self._at = self._logged(command)
        try:
            outcome = self._ask(partial(self._verbs[verb], *args), refusals)
        except refusals as refusal:
            self._unchanged(before, f"{command} was refused with {type(refusal).__name__}")
            self.counts["refusals"] += 1
            del self._log[position]
            self._at = None
            return False
        did = not (outcome is False or (isinstance(outcome, StepReport) and not outcome.events))
        self._log[position] = (command, outcome)
        self._look()
        self._collect()
        self._at = None
        if not did:
            del self._log[position]
        return did

    def report(self, worker: int, jobs: Sequence[int]) -> None:
        if self._engine.config.reports == "marks":
            marks = {str(self._books.jobs[number].stream): number for number in sorted(jobs)}
            for stream, mark in marks.items():
                self._at = self._logged(Command("report_mark", (worker, stream, mark)))
                deliver = partial(self._runtime.deliver_mark, worker, COPIES[stream], mark)
                self._report(worker, self._books.owed(worker, stream, mark), deliver)
            return
        for number in jobs:
            self._at = self._logged(Command("report", (worker, number)))
        self._report(worker, jobs, lambda: self._runtime.deliver(worker, jobs))

    def _report(self, worker: int, jobs: Sequence[int], deliver: Callable[[], object]) -> None:
        """Have these jobs reported by `deliver`, and judge what comes of it."""
        batch = [self._books.jobs[number] for number in jobs]
        before = self._cached()
        self._ask(deliver)
        failed = {job.id: self._failing.of(worker, job.id, len(job.pairs)) for job in batch}
        complete = self._books.reported(worker, jobs, failed)
        for tier, cached in self._cached().items():
            of_tier = [job for job in batch if job.writes is tier]
            ended = [job for job in complete if job in of_tier]
            self._books.check_published(tier, before[tier], cached, of_tier, ended)
        self._books.check_withdrawn(self._engine, [job for job in complete if job.view == "LIVE"])
        for job in batch:
            blocks = len(job.pairs) - len(failed[job.id])
            self.counts.update({"copies": blocks, COPIED[job.stream]: blocks})
            self.counts["failed copies"] += len(failed[job.id])
        for job in complete:
            self.counts[f"{job.stream}s{'' if job.view == 'LIVE' else ' dropped'}"] += 1
        self._reports.extend((worker, number) for number in jobs)
        self._look()
        self._at = None

    # Asking.

    def phases(self) -> Mapping[int, str]:
        return {n: str(request.phase) for n, request in self._engine.requests.items() if request.phase != Phase.DONE}

    def copied(self) -> tuple[tuple[int, ...], ...]:
        return self._ask(lambda: tuple(self._copied(worker) for worker in range(self._scope.workers)))

    def _copied(self, worker: int) -> tuple[int, ...]:
        if self._engine.config.reports == "per-job":
            return self._device.copied(worker)
        owed = [job.id for job in self._books.jobs.values() if job.launched and worker not in job.reported]
        return tuple(number for number in owed if self._has_run(worker, number))

    def reported(self) -> Sequence[tuple[int, int]]:
        jobs = self._books.jobs
        return [(worker, job) for worker, job in self._reports if job in jobs] or self._reports

    def expirable(self) -> Sequence[int]:
        return [job.id for job in self._books.jobs.values() if job.launched and job.view != "FORGOTTEN"]

    def lost(self) -> Sequence[int]:
        return [number for number in self.expirable() if self._books.jobs[number].lost]

    def may_schedule(self) -> bool:
        return self._ask(self._runtime.may_launch)

    def output_ready(self) -> bool:
        return self._ask(self._runtime.can_handle_output)

    def finishable(self) -> Sequence[int]:
        return [number for number in self._engine.requests if self._engine.can_finish(number)]

    def wait(self) -> None:
        self._stir.clear()
        self._stir.wait(STIR_S)

    def stall(self, worker: int) -> None:
        if self._may_stall and worker not in self._stalled:
            self._stalled[worker] = threading.Event()
            self.counts["stalls"] += 1

    def resume(self) -> None:
        for stalled in self._stalled.values():
            stalled.set()
        self._stalled.clear()

    def log(self) -> tuple[tuple[Command, str], ...]:
        known = list(self._log) if self._at is None else self._log[: self._at + 1]
        return tuple((command, note(outcome)) for command, outcome in known)

    def close(self) -> None:
        self.resume()
        self._ask(self._device.close)

    # Judging.

    def drain(self) -> None:
        self.resume()
        self._ask(self._device.drain)
        self._look()
        self._books.check_stepping(self._engine)
        workers = range(self._scope.workers)
        for tier, pool in pools_of(self._engine).items():
            for key, block in pool.cache.blocks.items():
                for worker in workers:
                    expected = Content(key, self._books.generation)
                    self._holds(worker, tier, block, expected, "published-after-all-copied", "can be hit as")
        for job in self._books.jobs.values():
            self._ran(job)
            if job.launched and job.view == "LIVE":
                self._copied_right(job)
        for number, request in self._engine.requests.items():
            if request.phase is Phase.RUNNING:
                for worker in workers:
                    self._reads_right(worker, number)
        self.counts["drains"] += 1

    def judge_rest(self) -> None:
        waiting = self.phases()
        left = [str(job) for job in self._books.jobs.values() if not job.only_lost]
        if waiting:
            number, phase = next(iter(waiting.items()))
            waits = sorted(self._engine.requests[number].jobs)
            because = f", it waits for jobs {waits}" if waits else ""
            raise Violation(
                "every-request-can-finish",
                f"{request_name(number)} is {phase} for ever: all copies have run and were reported, and scheduling "
                f"does nothing{because}; transfers left: {', '.join(left) or 'none'}.",
                "request stuck",
                phase,
            )
        if left:
            raise Violation("everything-drains", f"Nothing more will happen, and {left[0]} is left.", "job stuck")

    # The verbs.

    def _submit(self, request: int) -> None:
        self._engine.submit(request, self._keys.prompt[request], self._keys.total[request])
        self.counts["requests"] += 1

    def _leave(self, method: Callable[[int], None], request: int) -> None:
        method(request)
        self._books.left(request)
        self.counts["aborts" if method == self._engine.abort else "preemptions"] += 1

    def _reset(self, meaning: Meaning, requests: Survivors, tiers: Tiers = "all") -> str:
        answer = self._engine.reset(meaning, requests, tiers)
        self._books.reset(self._engine, meaning, tiers, answer)
        self.counts["resets"] += 1
        self.counts["resets answered False"] += not answer
        return f"answered {answer}"

    def _promote(self, request: int) -> str:
        job = self._engine.promote(request)
        self._books.promoted(request, job.id, job.pairs)
        return f"promotion {job.id}"

    def _admit(self, request: int) -> object:
        admission = self._engine.admit(request)
        self._books.admitted(request, admission)
        return admission

    def _preempt_under_pressure(self) -> object:
        victim = self._engine.preempt_under_pressure()
        self.counts["preempted under pressure"] += victim is not None
        return False if victim is None else f"preempts {request_name(victim)}"

    def _launch(self) -> LaunchPlan:
        plan = self._runtime.launch()
        self._launched(plan)
        return plan

    def _launched(self, plan: LaunchPlan) -> None:
        self._books.launched(plan, self._has_run, self._engine.host_pool.cache.blocks)
        self.counts["launches"] += 1
        self.counts["launches ahead"] += len(self._engine.scheduler.pipeline) > 1
        self.counts["flushed"] += len(plan.flush)

    def _has_run(self, worker: int, job: int) -> bool:
        """Asked only about jobs that this worker has not reported."""
        if worker in self._books.jobs[job].lost or job in self._device.copied(worker):
            return True
        direction = COPIES.get(self._books.jobs[job].stream)
        return direction is not None and has_taken_in(self._runtime.workers[worker], direction, job)

    def _finish(self, request: int) -> None:
        if self._engine.can_finish(request):
            for worker in range(1 if self._engine.config.output_from == "first" else self._scope.workers):
                self._reads_right(worker, request)
        self._engine.finish(request)
        self.counts["finished"] += 1

    def _stop(self, request: int) -> None:
        self._engine.stop(request)
        self.counts["stopped"] += 1

    def _schedule(self) -> StepReport:
        report = self._runtime.schedule()
        for event in report.events:
            match event:
                case Admitted(request, admission):
                    self._books.admitted(request, admission)
                    self.counts["device hits"] += len(admission.device_blocks)
                case Promoted(request, number, pairs):
                    self._books.promoted(request, number, pairs)
                case Preempted():
                    self.counts["preempted under pressure"] += 1
                case Launched(plan):
                    self._launched(plan)
                case _:
                    pass
        return report

    def _duplicate_report(self, worker: int, job: int) -> None:
        """What was reported before changes nothing, but for the count of stale reports."""
        before = pickle.dumps(self._engine.scheduler, pickle.HIGHEST_PROTOCOL)
        self._engine.report(worker, [job])
        if changed(self._engine.scheduler, before):
            raise Violation(
                "stale-completions-change-nothing",
                f"w{worker} reported job {job} again, and that changed the engine's state.",
                "repeated report",
            )
        self.counts["repeated reports"] += 1

    def _repeat_mark(self, worker: int, stream: str, which: str) -> bool:
        """What was reported before changes nothing."""
        before = pickle.dumps(self._engine.scheduler, pickle.HIGHEST_PROTOCOL)
        did = repeated(self._engine, self._runtime.workers[worker], COPIES[stream], which)
        if changed(self._engine.scheduler, before):
            raise Violation(
                "stale-completions-change-nothing",
                f"w{worker} reported a mark of its {stream}s again, and that changed the engine's state.",
                "repeated mark",
            )
        self.counts["repeated reports"] += did
        return did

    def _lose_mark(self, worker: int, stream: str) -> None:
        self._runtime.workers[worker].get_mark(COPIES[stream])
        self.counts["lost marks"] += 1

    def _lose_report(self, worker: int, job: int) -> None:
        self._runtime.workers[worker].collect([job])
        self._books.jobs[job].lost.add(worker)
        self.counts["lost reports"] += 1

    def _expire(self, job: int) -> None:
        """Nothing of it may be published, now or when it is reported late, and what it could not load is withdrawn."""
        before = self._cached()
        self._engine.expire(job)
        wanted = self._books.expired(job)
        expired = [self._books.jobs[job]]
        for tier, cached in self._cached().items():
            self._books.check_published(tier, before[tier], cached, expired, [])
        self._books.check_withdrawn(self._engine, expired if wanted else [])
        self.counts["expired"] += 1

    def _forge_report(self, worker: int) -> str:
        def forge() -> None:
            never = self._engine.connector.next_job
            if self._engine.config.reports == "marks":
                self._engine.report_mark(worker, Direction.STORE, never)
            known = [number for number in self._engine.jobs if worker in self._engine.jobs[number].awaiting][:1]
            self._engine.report(worker, [*known, never])

        return self._must_refuse(forge, UnknownJob, "stale-completions-change-nothing", "a job that never was")

    def _free_twice(self, what: str) -> str:
        if what == "request":
            ended = [*self._ended(), len(self._keys.prompt)]
            return self._must_refuse(
                lambda: self._engine.abort(ended[0]),
                UnknownRequest,
                "no-double-free",
                "the abort of a request that has ended",
            )
        pool = pools_of(self._engine)[Tier(what)]
        free = next(pool.free_blocks(), None)
        if free is not None:
            self._must_refuse(lambda: pool.release([free]), DoubleFree, "no-double-free", f"a free {what} block")
        block = max(range(pool.size), key=pool.counts.__getitem__)
        too_often = [block] * (pool.counts[block] + 1)
        return self._must_refuse(
            lambda: pool.release(too_often), DoubleFree, "no-double-free", f"a {what} block once too often in one call"
        )

    # Parts.

    def _cached(self) -> dict[Tier, dict[int, int]]:
        """What can be hit on each tier now: key -> block."""
        return {tier: dict(pool.cache.blocks) for tier, pool in pools_of(self._engine).items()}

    def _ended(self) -> Sequence[int]:
        return [number for number, request in self._engine.requests.items() if request.phase is Phase.DONE]

    def _logged(self, command: Command) -> int:
        """Put a command at the end of the log. Only this thread takes entries out again, so its place is known."""
        position = len(self._log)
        self._log.append((command, None))
        while self._log[position][0] is not command:  # streams' threads append too
            position += 1
        return position

    def _began(self, worker: int, operation: Operation) -> None:
        """On a stream's thread, which goes no further while its worker stalls. Appending to a list is atomic."""
        stalled = self._stalled.get(worker)
        if stalled is not None:
            stalled.wait()
        self._log.append((self._failing.run(worker, operation), None))
        self._stir.set()

    def _ask(self, method: Callable[[], _Answer], refusals: tuple[type[Exception], ...] = ()) -> _Answer:
        """What the method answers, or one of these refusals; everything else that it raises is a violation."""
        try:
            return method()
        except Violation:
            raise
        except Exception as error:
            if isinstance(error, refusals):
                raise
            raise raised(error) from error

    def _must_refuse(
        self, method: Callable[[], None], refusal: type[KVOffloadError], property_name: str, what: str
    ) -> str:
        before = pickle.dumps(self._engine, pickle.HIGHEST_PROTOCOL)
        try:
            self._ask(method, (refusal,))
        except refusal as error:
            self._unchanged(before, f"{what} was refused with {refusal.__name__}")
            self.counts["faults refused"] += 1
            return f"refused: {error}"
        raise Violation(
            property_name,
            f"The engine accepted {what}.",
            "accepted",
            contract=f"{refusal.__name__}",
            target="no refusal",
        )

    def _unchanged(self, before: bytes, what: str) -> None:
        if changed(self._engine, before):
            raise Violation("refused-changes-nothing", f"{what}, and that changed the engine's state.", "refused")

    def _collect(self) -> None:
        for number in self._ended()[:-KEPT_ENDED]:
            self._ask(partial(self._engine.collect, number))

    def _look(self) -> None:
        """Whatever can be seen without stopping the streams."""
        for misread in self._device.misreads:
            self._misheld(
                misread.worker,
                Tier.DEVICE,
                misread.block,
                misread.expected,
                misread.found,
                "reads-what-was-written",
                f"was read by step {misread.step} as",
            )
        self._announced = replayed(self._announced, self._engine.take_events())
        self._books.check(self._engine, self._announced)

    def _ran(self, job: BookedJob) -> None:
        """The streams are empty."""
        for worker in range(self._scope.workers if job.launched else 0):
            if worker not in job.reported and not self._has_run(worker, job.id):
                raise Violation(
                    "everything-drains",
                    f"The streams of w{worker} are empty, and {job} was launched and has not run there.",
                    "operation lost",
                )

    def _copied_right(self, job: BookedJob) -> None:
        """It has run everywhere and is LIVE: what did not fail will be published."""
        for worker in range(self._scope.workers):
            failed = self._failing.of(worker, job.id, len(job.pairs))
            for position, (_, block, key) in enumerate(job.pairs):
                if position not in failed:
                    expected = Content(key, self._books.generation)
                    what = f"was written by {job} as"
                    self._holds(worker, job.writes, block, expected, "reads-what-was-written", what)

    def _reads_right(self, worker: int, request: int) -> None:
        running = self._engine.requests[request]
        for position in range(running.computed):
            if running.table[position] == NO_BLOCK:
                continue
            expected = self._books.content(request, position)
            what = f"is read by {request_name(request)} as"
            self._holds(worker, Tier.DEVICE, running.table[position], expected, "reads-what-was-written", what)

    def _holds(self, worker: int, tier: Tier, block: int, expected: Content, property_name: str, what: str) -> None:
        found = self._ask(lambda: self._device.content(tier, worker, block))
        self.counts["blocks checked"] += 1
        if found != expected:
            self._misheld(worker, tier, block, expected, found, property_name, what)

    def _misheld(
        self,
        worker: int,
        tier: Tier,
        block: int,
        expected: Content,
        found: Content | Unreadable,
        property_name: str,
        what: str,
    ) -> None:
        self._at = None  # who wrote these bytes is in the whole log
        old = isinstance(found, Content) and found.key == expected.key and found.generation < expected.generation
        name = f"{tier[0]}{block} on w{worker}"
        raise Violation(
            self._books.serves_old if old else property_name,
            f"{str(tier).capitalize()} block {name} {what} {self._told(expected)}, and holds {self._told(found)}.",
            "bytes",
            str(tier),
            what.partition(" by ")[0],
            contract=f"{name} holds {self._told(expected)}",
            target=f"{name} holds {self._told(found)}",
        )

    def _told(self, content: Content | Unreadable) -> str:
        if isinstance(content, Unreadable):
            return f"{content} bytes"
        age = self._books.generation - content.generation
        return self._books.name(content.key) + (f" from {age} weight change{'s' * (age > 1)} ago" if age else "")


def open_soaked(setting: Setting) -> Soaked:
    """A new engine on a new device, whose threads run until it is closed."""
    return KVOffload(setting)
