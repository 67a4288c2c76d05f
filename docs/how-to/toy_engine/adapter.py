"""The toy engine under kvproof: what each command means to it, and what can be seen of it."""

from engine import Engine, Job, NotNow
from engine import Request as ToyRequest

from kvmodel import Contract
from kvmodel import actions as act
from kvmodel.request import ABSENT, DONE, LOADING, RUNNING, WAITING, Request
from kvmodel.setting import Setting
from kvmodel.streams import STREAMS
from kvmodel.transfer_job import ABANDONED, DIRECTIONS, LIVE, NONE, Pair
from kvproof.targets.outcome import Answer, Outcome
from kvproof.targets.target import StepTarget
from kvproof.targets.view import JobView, View

PHASES = {"waiting": WAITING, "loading": LOADING, "running": RUNNING, "done": DONE}


class MyEngine(StepTarget):
    contract = Contract("pinning")
    meanings = ("invalidate",)
    survivors = False
    refusals = (NotNow,)

    def __init__(self, setting: Setting) -> None:
        scope = setting.scope
        self.setting = setting
        self.engine = Engine(scope.device_blocks, scope.host_blocks, scope.workers)

    # The client.

    def submit(self, request: int) -> Outcome:
        keys = self.setting.total_keys[request]
        self.engine.submit(request, keys, len(self.setting.prompt_keys[request]))
        return Answer()

    def preempt(self, request: int) -> Outcome:
        self.engine.preempt(request)
        return Answer()

    def abort(self, request: int) -> Outcome:
        self.engine.abort(request)
        return Answer()

    def reset(self, meaning: str, requests: str) -> Outcome:
        return Answer(self.engine.reset())

    # The scheduler.

    def schedule(self) -> Outcome:
        step = self.engine.schedule()
        observed: list[act.Action] = [act.Finish(request) for request in step.finished]
        observed += [act.Wake(request) for request in step.woken]
        for request, hits, on_host, fresh in step.admitted:
            observed.append(act.Admit(request, act.Admission(tuple(hits), tuple(on_host), tuple(fresh))))
        if step.launched:
            computes = tuple((share.request.id, share.start, len(share.table)) for share in step.computes)
            stores = tuple((NONE, pairs_of(job)) for job in step.stores)
            observed.append(act.Launch(act.Launching(computes, stores, (), ())))
        return Answer(None, tuple(observed))

    def handle_output(self) -> Outcome:
        self.engine.handle_output()
        return Answer()

    # The workers.

    def run(self, worker: int, stream: str) -> Outcome:
        self.engine.workers[worker].run(stream)
        return Answer()

    def report(self, worker: int, job: int) -> Outcome:
        self.engine.report(worker, job)
        return Answer()

    def report_all(self, worker: int) -> Outcome:
        for job in list(self.engine.workers[worker].copied):
            self.engine.report(worker, job)
        return Answer()

    # What is seen.

    def view(self) -> View:
        engine = self.engine
        return View(
            device_refs=tuple(engine.device.refs),
            device_keys=tuple(engine.device.keys),
            device_free=tuple(engine.device.free),
            host_refs=tuple(engine.host.refs),
            host_keys=tuple(engine.host.keys),
            host_free=tuple(engine.host.free),
            requests=tuple(seen(engine.requests.get(number)) for number in range(len(self.setting.total_keys))),
            jobs=tuple(
                JobView(
                    job.id,
                    DIRECTIONS.index(job.direction),
                    NONE if job.request is None else job.request.id,
                    pairs_of(job),
                    LIVE if job.wanted else ABANDONED,
                    tuple(sorted(job.awaiting)),
                )
                for job in engine.jobs.values()
            ),
            runnable=tuple(
                (number, STREAMS.index(stream))
                for number, worker in enumerate(engine.workers)
                for stream in worker.streams
                if worker.can_run(stream)
            ),
        )


def seen(request: ToyRequest | None) -> Request:
    if request is None:
        return Request(ABSENT)
    jobs = () if request.load is None else (request.load.id,)
    return Request(PHASES[request.state], tuple(request.table), request.computed, jobs=jobs)


def pairs_of(job: Job) -> tuple[Pair, ...]:
    return tuple(Pair(*pair) for pair in job.pairs)
