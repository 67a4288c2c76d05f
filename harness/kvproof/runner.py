"""Runs jobs on worker processes, longest first, and has a result for each of them whatever happens."""

import dataclasses
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import RawValue
from types import FrameType
from typing import NamedTuple

from kvproof.engines import ENGINES
from kvproof.job import Job
from kvproof.targets.registry import is_ours
from kvproof.verdict import Result, Verdict
from kvproof.worker import Flag, work

TICK_S = 0.2
"""How soon the runner notices a signal or a spent budget."""

GRACE_S = 10.0
"""How long an engine that was told to stop may take until it is ended by force."""

GRACE_INTERRUPTED_S = 3.0
"""The same after Ctrl-C."""


class Status(NamedTuple):
    """What a progress line shows: seconds so far, jobs done and in all, and each running job with its last words."""

    seconds: float
    done: int
    total: int
    running: tuple[tuple[Job, str], ...]


class Outcome(NamedTuple):
    """One result for each job, in the order of the jobs; `signal` is the one that ended the run early, or None."""

    results: tuple[Result, ...]
    seconds: float
    signal: int | None


@dataclasses.dataclass
class _Running:
    index: int
    job: Job
    process: BaseProcess
    started: float
    words: str = ""


def run_jobs(
    jobs: Sequence[Job],
    *,
    costs: Sequence[float],
    workers: int = 2,
    budget_s: float | None = None,
    show: Callable[[Status], None] = lambda status: None,
    grace_s: float = GRACE_S,
) -> Outcome:
    """Run every job in a process of its own, at most `workers` at a time, the one with the greatest cost first.

    `budget_s` is for all of them together: when it is spent, running engines are told to stop, and what never began is
    UNDETERMINED. SIGINT (Ctrl-C) and SIGTERM do the same; a second one ends the engines at once. `show` is called at
    least every TICK_S. A process that dies without a result is an ERROR that says how.
    """
    return _Runner(jobs, costs, workers, budget_s, show, grace_s).run()


_OURS = "kvproof.targets.kvoffload"
_WITH_TORCH = "kvproof.targets.kvoffload_soak"
_WITH_VLLM = ("kvproof.targets.vllm.offloading", "kvproof.targets.vllm.simple")


def preloaded(jobs: Sequence[Job]) -> list[str]:
    """What is imported once in the server, rather than in the process of each job. torch takes more than a second, so
    that it must be for many; vLLM takes many seconds, and what this process has of it can be imported there too."""
    engines = {str(ENGINES[job.engine]).partition(":")[0] for job in jobs if job.engine in ENGINES}
    ours = [_OURS] if any(is_ours(job.target) for job in jobs) else []
    with_torch = [_WITH_TORCH] if sum(job.device in ("host", "cuda") for job in jobs) > 2 else []
    with_vllm = [name for name in _WITH_VLLM if name in sys.modules]
    return ["kvproof.worker", *sorted(engines), *ours, *with_torch, *with_vllm]


class _Runner:
    def __init__(
        self,
        jobs: Sequence[Job],
        costs: Sequence[float],
        workers: int,
        budget_s: float | None,
        show: Callable[[Status], None],
        grace_s: float,
    ) -> None:
        self.jobs = jobs
        self.queue = sorted(range(len(jobs)), key=lambda index: -costs[index])
        self.workers = workers
        self.show = show
        self.grace_s = grace_s
        self.context: ForkServerContext = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(preloaded(jobs))
        self.flag: Flag = RawValue("b", 0)
        self.running: dict[Connection, _Running] = {}
        self.results: dict[int, Result] = {}
        self.started = time.monotonic()
        self.deadline = None if budget_s is None else self.started + budget_s
        self.budget_s = budget_s
        self.signals: list[int] = []
        self.kill_at: float | None = None

    def run(self) -> Outcome:
        with self._signals():
            while self.queue or self.running:
                self._stop_if_due()
                while self.queue and len(self.running) < self.workers and self.flag.value == 0:
                    self._start(self.queue.pop(0))
                for connection in wait(list(self.running), timeout=TICK_S):
                    assert isinstance(connection, Connection)
                    self._hear(connection)
                self._end_the_late()
                running = tuple((entry.job, entry.words) for entry in self.running.values())
                self.show(Status(time.monotonic() - self.started, len(self.results), len(self.jobs), running))
        results = tuple(self.results[index] for index in range(len(self.jobs)))
        return Outcome(results, time.monotonic() - self.started, self.signals[0] if self.signals else None)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def note(number: int, frame: FrameType | None) -> None:
            self.signals.append(number)

        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for entry in self.running.values():  # only if the runner itself failed
                entry.process.kill()

    def _start(self, index: int) -> None:
        job = self.jobs[index]
        if self.deadline is not None:
            left = max(self.deadline - time.monotonic(), 0.0)
            job = dataclasses.replace(job, budget_s=left if job.budget_s is None else min(left, job.budget_s))
        here, there = self.context.Pipe(duplex=False)
        process = self.context.Process(target=work, args=(job, there, self.flag), name=str(job), daemon=True)
        # Ctrl-C goes to every process of the terminal's group. Only this one decides what it means, so children start
        # with it blocked (the mask is inherited); arriving here meanwhile, it waits until it is unblocked.
        resource_tracker.ensure_running()  # first: starting it would unblock the signal again
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        there.close()
        self.running[here] = _Running(index, job, process, time.monotonic())

    def _hear(self, connection: Connection) -> None:
        entry = self.running[connection]
        try:
            kind, content = connection.recv()
        except EOFError:
            self._finish(connection, self._died(entry))
            return
        except Exception as error:  # noqa: BLE001 (unpickling runs code of the target)
            self._finish(
                connection, self._failed(entry, f"its result cannot be read ({type(error).__name__}: {error})")
            )
            return
        if kind == "result":
            self._finish(connection, content)
        else:
            entry.words = str(content)

    def _finish(self, connection: Connection, result: Result) -> None:
        entry = self.running.pop(connection)
        connection.close()
        entry.process.join(timeout=self.grace_s)
        if entry.process.is_alive():  # a thread of the target keeps it alive; its result is here
            entry.process.kill()
            entry.process.join()
        self.results[entry.index] = result

    def _died(self, entry: _Running) -> Result:
        entry.process.join()
        code = entry.process.exitcode
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"exited with status {code}"
        return self._failed(entry, f"the process of {entry.job} {how} without a result")

    def _failed(self, entry: _Running, detail: str) -> Result:
        return entry.job.result(Verdict.ERROR, time.monotonic() - entry.started, detail=detail)

    def _stop_if_due(self) -> None:
        spent = self.deadline is not None and time.monotonic() > self.deadline
        if self.flag.value == 0 and (self.signals or spent):
            self.flag.value = 1
            self.kill_at = time.monotonic() + (GRACE_INTERRUPTED_S if self.signals else self.grace_s)
        if self.flag.value:
            why = "interrupted" if self.signals else f"the budget of {self.budget_s:g} s was spent"
            for index in self.queue:
                detail = f"not started: {why}"
                self.results[index] = self.jobs[index].result(Verdict.UNDETERMINED, 0.0, detail=detail)
            self.queue.clear()

    def _end_the_late(self) -> None:
        now = time.monotonic()
        hurry = len(self.signals) > 1
        for connection, entry in list(self.running.items()):
            own = None if entry.job.budget_s is None else entry.started + entry.job.budget_s + self.grace_s
            late = (self.kill_at is not None and now > self.kill_at) or (own is not None and now > own)
            if not (late or hurry) or connection.poll():
                continue
            entry.process.kill()
            entry.process.join()
            seconds = now - entry.started
            detail = "did not stop when it was told to, and was ended by force"
            self.results[entry.index] = entry.job.result(Verdict.UNDETERMINED, seconds, detail=detail)
            del self.running[connection]
            connection.close()
