"""An engine with its workers on one device: what a serving process runs."""

import time
from collections.abc import Callable, Iterator, Sequence

from kvoffload.completions.marks import MARKED, NO_MARK, WorkerMarks
from kvoffload.deadlines import Deadlines
from kvoffload.devices.device import Device
from kvoffload.engine import Engine
from kvoffload.errors import NothingToLaunch, NotRunnable, UnknownJob
from kvoffload.ids import JobId, WorkerRank
from kvoffload.plan import LaunchPlan
from kvoffload.step_report import Event, Expired, Finished, OutputHandled, Reported, StepReport
from kvoffload.transfer_job import Direction
from kvoffload.worker import Worker


class Runtime:
    """Joins the control plane with the workers. Everything that only the engine decides is called on `engine`.

    marks: those of the workers, where an engine with `reports="marks"` goes on with workers that have a past.

    clock: gives seconds, for an engine whose transfers have a deadline.

    ValueError if the device has another number of workers than the engine, or fewer blocks of a second tier.
    """

    def __init__(
        self,
        engine: Engine,
        device: Device,
        marks: Sequence[WorkerMarks] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if device.workers != engine.config.workers:
            raise ValueError(f"the device has {device.workers} workers, the engine {engine.config.workers}")
        if device.second_blocks < engine.config.second_blocks:
            has, wanted = device.second_blocks, engine.config.second_blocks
            raise ValueError(f"the device has {has} blocks of a second tier, the engine {wanted}")
        self.engine = engine
        self.device = device
        ranks = range(device.workers)
        if engine.config.reports == "marks":
            own = [WorkerMarks.fresh() for _ in ranks] if marks is None else marks
            self.workers = [Worker(rank, device, own[rank]) for rank in ranks]
        else:
            self.workers = [Worker(rank, device) for rank in ranks]
        self.deadlines = None if engine.config.deadline is None else Deadlines(engine, clock)

    def may_launch(self) -> bool:
        """Is every worker far enough to be given another step?

        With `output_from="first"` a step ends before the other workers have run it. They may lag by that step, not by
        two: so at most two computes are queued on any worker, and one more at depth 2.
        """
        ran = min([self.device.computed(worker.rank) for worker in self.workers])
        return ran >= self.engine.scheduler.handled_steps - 1

    def can_launch(self) -> bool:
        return self.engine.can_launch() and self.may_launch()

    def launch(self) -> LaunchPlan:
        """Launch on the engine and on every worker. NothingToLaunch also if a worker is too far behind."""
        if not self.may_launch():
            raise NothingToLaunch("a worker has not run the step before the last one")
        plan = self.engine.launch()
        self._tell(plan)
        return plan

    def deliver(self, worker: WorkerRank, jobs: Sequence[JobId]) -> None:
        """Collect these jobs from one worker and report them. UnknownJob and no effect if one has not run there."""
        failed = self.workers[worker].collect(jobs)
        self.engine.report(worker, jobs, failed)

    def deliver_mark(self, worker: WorkerRank, direction: Direction, mark: JobId) -> tuple[JobId, ...]:
        """Report that one worker has got as far as this job. An older mark than its own is one that comes late.

        Answers of which jobs that was news. UnknownJob and no effect on the engine if it has not got so far.
        """
        if mark > self.workers[worker].get_mark(direction):
            raise UnknownJob(f"worker {worker} has not copied every {direction.lower()} up to job {mark}")
        return self._state_mark(self.workers[worker], direction, mark)

    def can_handle_output(self) -> bool:
        """Has the awaited step run on the workers whose output ends it?"""
        step = self.engine.can_handle_output_of()
        if step is None:
            return False
        deciding = self.workers if self.engine.config.output_from == "all" else self.workers[:1]
        return all(self.device.computed(worker.rank) > step for worker in deciding)

    def handle_output(self) -> None:
        """Take in the awaited step's output. NotRunnable if none is awaited or it has not run where it must."""
        if not self.can_handle_output():
            raise NotRunnable("no step is awaited, or its compute has not run yet")
        self.engine.handle_output()

    def poll(self) -> tuple[Event, ...]:
        """Take in whatever has happened: what ran on any worker, transfers that are overdue, outputs. Never waits."""
        events: list[Event] = []
        for worker in self.workers:
            events += self._reports(worker)
        for job in self.deadlines.overdue() if self.deadlines is not None else ():
            self.engine.expire(job)
            events.append(Expired(job))
        while (step := self.engine.can_handle_output_of()) is not None and self.can_handle_output():
            self.engine.handle_output()
            events.append(OutputHandled(step))
        return tuple(events)

    def _reports(self, worker: Worker) -> Iterator[Reported]:
        """Report everything that has run on a worker. Marks are stated each time: so one that was lost is made good,
        with a step or without one."""
        if worker.marks is None:
            finished = worker.get_finished()
            if finished:
                jobs = tuple(finished)
                self.engine.report(worker.rank, jobs, finished)
                yield Reported(worker.rank, jobs, tuple([job for job in jobs if finished[job]]))
            return
        for direction in MARKED:
            mark = worker.get_mark(direction)
            if mark != NO_MARK:
                failed = set(worker.marks.of(direction).failed)
                jobs = self._state_mark(worker, direction, mark)
                if jobs:
                    yield Reported(worker.rank, jobs, tuple([job for job in jobs if job in failed]))

    def _state_mark(self, worker: Worker, direction: Direction, mark: JobId) -> tuple[JobId, ...]:
        """The engine takes the mark in, and with it what of the jobs up to it has failed; the worker learns of that."""
        stream = worker.mark_of(direction)
        news = self.engine.report_mark(worker.rank, direction, mark, stream.failed)
        stream.taken_in(mark)
        return news

    def schedule(self) -> StepReport:
        """One scheduling call of the engine, its launch (if any) handed to the workers."""
        report = self.engine.schedule(self.may_launch())
        if report.plan is not None:
            self._tell(report.plan)
        return report

    def step(self) -> StepReport:
        """One iteration of serving: take in what has happened, finish what is complete, schedule."""
        events = list(self.poll())
        for request in self.engine.requests:
            if self.engine.can_finish(request):
                self.engine.finish(request)
                events.append(Finished(request))
        report = self.schedule()
        return StepReport((*events, *report.events), report.plan)

    def _tell(self, plan: LaunchPlan) -> None:
        for worker in self.workers:
            worker.launch(plan)
