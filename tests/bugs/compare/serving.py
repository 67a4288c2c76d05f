"""An engine with workers under test as one would test it without a model: random commands, invariants on its books.

Nothing here knows what should happen next. What is asked after each command is what an engineer asks of such books: the
free queue holds the unreferenced blocks, each once; every reference has an owner; the index is a one-to-one map, and is
what the events have said; what can be found in a cache, and what a request has computed, is what every worker has
there; nothing was read that was not there; what is refused has changed nothing. In the end, without further commands,
everything must drain, and one more request must be served, stored, and loaded.
"""

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from kvoffload.completions.marks import MARKED, NO_MARK
from kvoffload.config import Config
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import DoubleFree, KVOffloadError, UnknownJob, UnknownRequest
from kvoffload.ids import JobId, Key, Meaning, RequestId, Survivors, Tiers, WorkerRank
from kvoffload.operations import Stream
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.transfer_job import Direction, JobState
from tests.bugs.compare.books import Index, check

T = TypeVar("T")


class Pick(Protocol):
    """Chooses one of several: Hypothesis draws it, or a random number."""

    def __call__(self, options: Sequence[T], /) -> T: ...


PROMPTS = ((1,), (1, 2), (1, 3), (4, 5))
REPEATING = ((1, 1), (4, 4), (1, 4, 1))
"""Prompts with one key at several positions, where the engine takes them."""
LAST: Key = 1_000
"""Of the request that is served in the end."""
ROUNDS = 400
"""Iterations of serving after which whatever is left counts as stuck."""
PATIENCE = 10.0
"""Seconds of the clock that transfers have, where they have a deadline."""
NEVER_ISSUED: JobId = 10_000
RESETS: tuple[tuple[Meaning, Survivors, Tiers], ...] = (
    ("invalidate", "preempt", "all"),
    ("invalidate", "keep", "all"),
    ("evict", "preempt", "all"),
    ("evict", "keep", "all"),
    ("evict", "preempt", "device"),
    ("evict", "keep", "device"),
    ("evict", "keep", "host"),
)


class Serving:
    """One engine, its workers, and what was reported to it."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        window = pick((0, 0, 1))
        config = Config(
            discipline=pick(("pinning", "fencing")),
            device_blocks=pick((2, 3, 4)),
            host_blocks=pick((1, 2, 4)),
            workers=pick((1, 2)),
            store_mode=pick(("eager", "lazy")),
            output_from=pick(("all", "first")),
            depth=1 if window else pick((1, 2)),
            admission=pick(("whole", "partial")),
            reports=pick(("per-job", "marks")),
            repeats=pick((False, True)),
            deadline=pick((None, PATIENCE)),
            events=True,
            window=window,
        )
        self.now = 0.0
        self.device = Ledger.create(config.workers, config.device_blocks, config.host_blocks)
        self.engine = Engine.create(config)
        self.runtime = Runtime(self.engine, self.device, clock=lambda: self.now)
        self.index = Index()
        self.next_request: RequestId = 0
        self.reported: list[tuple[WorkerRank, JobId]] = []
        self.marked: list[tuple[WorkerRank, Direction, JobId]] = []
        self.refused = 0
        self._possible: dict[str, Callable[[], object]] = {
            "step": self._busy,
            "serve": self._busy,
            "run_operation": self.device.runnable,
            "deliver": lambda: self._stated() if self._marks else self._copied(),
            "fail_copy": self._copies,
            "lookup": self._lookups,
            "depart": self._departures,
            "reset": self._remembers,
            "misreport": lambda: self.engine.connector.next_job,
            "free_twice": lambda: self.refused < self.next_request,
        }

    def can(self, command: str) -> bool:
        """Whether a command would do something now: what would not is not offered, or most examples would be idle."""
        possible = self._possible.get(command)
        return possible is None or bool(possible())

    # Commands: each does something that is possible now, or nothing.

    def submit(self) -> None:
        prompt = self.pick((*PROMPTS, *REPEATING) if self.engine.config.repeats else PROMPTS)
        decoded = 10 + 2 * self.next_request
        more = self.pick(((), (), (decoded,), (decoded, decoded + 1)))
        total = (*prompt, *more)
        if len(total) <= self.engine.config.device_blocks:
            self.engine.submit(self.next_request, prompt, total)
            self.next_request += 1

    def step(self) -> None:
        self._collect()
        self.runtime.step()

    def serve(self) -> None:
        """Some iterations with nothing held back."""
        for _ in range(4):
            self._run_everything()
            self.step()

    def go_on(self) -> None:
        """Time goes on after each command: something runs, the engine steps. Without this hardly a request would ever
        end, and none load."""
        for _ in range(self.pick((0, 0, 0, 1, 4))):
            for worker, stream in self.device.runnable():
                self.device.run(worker, stream)
            self.step()

    def run_operation(self) -> None:
        runnable = self.device.runnable()
        if runnable:
            self.device.run(*self.pick(runnable))

    def fail_copy(self) -> None:
        """Wholly, or in the first block alone."""
        copies = self._copies()
        if copies:
            self.device.run_failing(*self.pick(copies), self.pick((None, (0,))))

    def deliver(self) -> None:
        if self._marks:
            if marks := self._stated():
                mark = self.pick(marks)
                self.runtime.deliver_mark(*mark)
                self.marked.append(mark)
        elif done := self._copied():
            rank, job = self.pick(done)
            self.runtime.deliver(rank, (job,))
            self.reported.append((rank, job))

    def lookup(self) -> None:
        """Look up, or give up what was found."""
        self._one_of(self._lookups())

    def depart(self) -> None:
        """A request is aborted, preempted or stopped, now and then: most end by themselves."""
        if self.pick((True, False)):
            self._one_of(self._departures())

    def reset(self) -> None:
        """Now and then: after each, nothing is cached that could be hit or loaded."""
        if not self.pick((True, False, False)):
            return
        meaning, requests, tiers = self.pick(RESETS)
        done = self.engine.reset(meaning, requests, tiers)
        assert tiers == "device" or not self.engine.host_pool.cache.blocks, "a reset left keys on the host"
        assert tiers == "host" or not self.engine.device_pool.cache.blocks, "a reset left keys on the device"
        if done and tiers == "all" and self.engine.config.discipline == "pinning":
            held = [job for job in self.engine.jobs.values() if job.state is not JobState.FORGOTTEN]
            assert not held, "a reset is over while transfers run"

    def misreport(self) -> None:
        """A report comes again, is forged, or is lost, where a deadline passes instead; or a deadline passes early."""
        self.pick((self._report_again, self._report_forged, self._lose_report, self._expire))()

    def free_twice(self) -> None:
        self.refused = self.next_request
        ended = [number for number, one in self.engine.requests.items() if one.phase is Phase.DONE]
        if ended:
            self._refused(UnknownRequest, partial(self.engine.abort, ended[0]))
        for pool in (self.engine.device_pool, self.engine.host_pool):
            for block in list(pool.free_blocks())[:1]:
                self._refused(DoubleFree, partial(pool.release, [block]))

    def _report_again(self) -> None:
        if self._marks and self.marked:
            self.engine.report_mark(*self.pick(self.marked))
        elif self.reported:
            rank, job = self.pick(self.reported)
            self.engine.report(rank, (job,))

    def _report_forged(self) -> None:
        if self._marks:
            self._refused(UnknownJob, lambda: self.engine.report_mark(0, Direction.STORE, NEVER_ISSUED))
        else:
            self._refused(UnknownJob, lambda: self.engine.report(0, (NEVER_ISSUED,)))

    def _lose_report(self) -> None:
        if not self._marks and self.engine.config.deadline is not None and (done := self._copied()):
            self.device.collect(*self.pick(done))

    def _expire(self) -> None:
        on_their_way = [
            job.id for job in self.engine.jobs.values() if job.launched and job.state is not JobState.FORGOTTEN
        ]
        if self.engine.config.deadline is not None and on_their_way:
            self.engine.expire(self.pick(on_their_way))

    # What must hold.

    def check(self) -> None:
        check(self.engine, self.device, self.index)

    def drain(self) -> None:
        self._settle()
        assert not self.engine.requests, "requests are stuck"
        assert not any(self.engine.device_pool.counts), "device blocks are lost"
        assert not any(self.engine.host_pool.counts), "host blocks are lost"
        assert self.engine.reset("invalidate", "preempt"), "an idle engine cannot be reset"
        self._serve_the_last()
        if self.engine.config.store_mode == "eager":
            assert LAST in self.engine.host_pool.cache.blocks, "a block is not stored"
        self.engine.reset("evict", "preempt", "device")
        self._serve_the_last()

    def _serve_the_last(self) -> None:
        self.engine.submit(self.next_request, (LAST,), (LAST,))
        self.next_request += 1
        self._settle()
        assert not self.engine.requests, "the last request is stuck"
        assert LAST in self.engine.device_pool.cache.blocks, "a block is not cached"

    def _settle(self) -> None:
        for _ in range(ROUNDS):
            self._run_everything()
            self.step()
            self.now += PATIENCE
            if not self.engine.has_work() and not self.device.runnable() and not self.runtime.can_launch():
                break
        self._collect()
        self.check()

    def _run_everything(self) -> None:
        while runnable := self.device.runnable():
            self.device.run(*runnable[0])

    # What is possible.

    def _busy(self) -> bool:
        return bool(self.engine.has_work() or self.device.runnable() or self.runtime.can_launch())

    def _remembers(self) -> bool:
        engine = self.engine
        return bool(engine.requests or engine.jobs or engine.device_pool.cache.blocks or engine.host_pool.cache.blocks)

    def _copies(self) -> list[tuple[WorkerRank, Stream]]:
        return [one for one in self.device.runnable() if one[1] is not Stream.COMPUTE]

    def _lookups(self) -> list[Callable[[], object]]:
        requests = self.engine.requests
        waiting: list[Callable[[], object]] = [
            partial(self.engine.lookup, request) for request in requests if self.engine.can_lookup(request)
        ]
        found = [
            partial(self.engine.release_lookup, number) for number, one in requests.items() if one.pins is not None
        ]
        return [*waiting, *found]

    def _departures(self) -> list[Callable[[], object]]:
        ways: list[Callable[[], object]] = []
        for number, one in self.engine.requests.items():
            if one.phase is not Phase.DONE and (one.phase is not Phase.DRAINING or one.returns):
                ways.append(partial(self.engine.abort, number))
            if one.phase in (Phase.LOADING, Phase.RUNNING):
                ways.append(partial(self.engine.preempt, number))
            if one.phase is Phase.RUNNING and len(one.prompt) <= one.computed < len(one.total):
                ways.append(partial(self.engine.stop, number))
        return ways

    def _one_of(self, ways: Sequence[Callable[[], object]]) -> None:
        if ways:
            self.pick(ways)()

    def _collect(self) -> None:
        for number in [number for number, one in self.engine.requests.items() if one.phase is Phase.DONE]:
            self.engine.collect(number)

    @property
    def _marks(self) -> bool:
        return self.engine.config.reports == "marks"

    def _copied(self) -> list[tuple[WorkerRank, JobId]]:
        return [(rank, job) for rank in range(self.engine.config.workers) for job in self.device.copied(rank)]

    def _stated(self) -> list[tuple[WorkerRank, Direction, JobId]]:
        """Marks that were not delivered yet."""
        stated = [(worker.rank, way, worker.get_mark(way)) for worker in self.runtime.workers for way in MARKED]
        return [mark for mark in stated if mark[2] != NO_MARK and mark not in self.marked]

    def _refused(self, error: type[KVOffloadError], call: Callable[[], object]) -> None:
        before = pickle.dumps(self.engine)
        try:
            call()
        except error:
            assert pickle.dumps(self.engine) == before, "what was refused has changed something"
            return
        raise AssertionError(f"{error.__name__} was not raised")


COMMANDS = (
    "submit", "step", "serve", "run_operation", "deliver", "fail_copy", "lookup", "depart", "reset", "misreport",
    "free_twice",
)  # fmt: skip
