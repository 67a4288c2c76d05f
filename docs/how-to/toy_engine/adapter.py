"""The toy engine under kvproof: what each command means to it, and what can be seen of it."""

from engine import Engine, Job, NotNow
from engine import Request as ToyRequest

from kvmodel import Contract
from kvmodel import actions as act
from kvmodel.request import ABSENT, DONE, LOADING, RUNNING, WAITING, Request
from kvmodel.setting import Setting
from kvmodel.transfer_job import ABANDONED, DIRECTIONS, LIVE, NONE, Pair
from kvproof.targets.alone import Alone
from kvproof.targets.outcome import Answer
from kvproof.targets.target import StepTarget
from kvproof.targets.view import JobView, View


class MyEngine(StepTarget):
    contract = Contract("pinning")
    meanings = ("invalidate",)
    survivors = False
    refusals = (NotNow,)
    verbs = StepTarget.verbs - {"preempt"}
    alone = Alone(
        begin="from engine import Engine\nengine = Engine({device_blocks}, {host_blocks}, {workers})",
        calls={
            "submit": "engine.submit({request}, {keys}, {prompt})",
            "abort": "engine.abort({request})",
            "reset": "engine.reset()",
            "schedule": "engine.schedule()",
            "handle_output": "engine.handle_output()",
            "run": "engine.run({worker}, {stream})",
            "report": "engine.report({worker}, {job})",
            "report_all": "[engine.report({worker}, job) for job in sorted(engine.copied[{worker}])]",
        },
        seen={
            "device_refs": "engine.device.refs",
            "host_refs": "engine.host.refs",
            "host_keys": "[{b: k for k, b in engine.cached.items()}.get(b, 0) for b in range(len(engine.host.refs))]",
        },
    )

    def __init__(self, setting: Setting) -> None:
        scope = setting.scope
        self.setting = setting
        self.engine = Engine(scope.device_blocks, scope.host_blocks, scope.workers)
        self.submitted: dict[int, ToyRequest] = {}

    # The client.

    def submit(self, request: int) -> Answer:
        keys, prompt = self.setting.total_keys[request], len(self.setting.prompt_keys[request])
        self.engine.submit(request, keys, prompt)
        self.submitted[request] = self.engine.requests[request]
        return Answer()

    def abort(self, request: int) -> Answer:
        self.engine.abort(request)
        return Answer()

    def reset(self, meaning: str, requests: str) -> Answer:
        return Answer(self.engine.reset())

    # The scheduler.

    def schedule(self) -> Answer:
        made, step = self.engine.made, self.engine.schedule()
        observed: list[act.Action] = [act.Finish(request) for request in step.finished]
        for request, (hits, fresh) in step.admitted.items():
            observed.append(act.Admit(request, act.Admission((), tuple(hits), tuple(fresh))))
        if step.computes or self.engine.made > made:
            computes = tuple((request, start, len(table)) for request, (table, start) in step.computes.items())
            stores = tuple((NONE, pairs_of(job)) for job in step.stores)
            observed.append(act.Launch(act.Launching(computes, stores, (), ())))
        return Answer(None, tuple(observed))

    def handle_output(self) -> Answer:
        self.engine.handle_output()
        return Answer()

    # The workers.

    def run(self, worker: int, stream: str) -> Answer:
        self.engine.run(worker, stream)
        return Answer()

    def report(self, worker: int, job: int) -> Answer:
        loading = [number for number, request in self.submitted.items() if request.load]
        self.engine.report(worker, job)
        return Answer(None, tuple(act.Wake(number) for number in loading if not self.submitted[number].load))

    def report_all(self, worker: int) -> Answer:
        outcomes = [self.report(worker, job) for job in sorted(self.engine.copied[worker])]
        return Answer(None, tuple(action for outcome in outcomes for action in outcome.observed))

    # What is seen.

    def view(self) -> View:
        engine = self.engine
        host_keys = {block: key for key, block in engine.cached.items()}
        return View(
            device_refs=tuple(engine.device.refs),
            device_free=tuple(engine.device.free),
            host_refs=tuple(engine.host.refs),
            host_keys=tuple(host_keys.get(block, 0) for block in range(len(engine.host.refs))),
            host_free=tuple(engine.host.free),
            requests=tuple(self.seen(number) for number in range(len(self.setting.total_keys))),
            jobs=tuple(
                JobView(
                    job.id,
                    DIRECTIONS.index(job.direction),
                    self.number(job.request) if job.direction == "load" else NONE,
                    pairs_of(job),
                    LIVE if job.wanted else ABANDONED,
                    tuple(sorted(job.awaiting)),
                )
                for job in engine.jobs.values()
            ),
        )

    def number(self, of: ToyRequest) -> int:
        return next(number for number, request in self.submitted.items() if request is of)

    def seen(self, number: int) -> Request:
        request = self.submitted.get(number)
        if request is None or number not in self.engine.requests:
            return Request(ABSENT if request is None else DONE)
        phase = LOADING if request.load else RUNNING if request.table else WAITING
        jobs = (request.load.id,) if request.load else ()
        return Request(phase, tuple(request.table), request.computed, jobs=jobs)


def pairs_of(job: Job) -> tuple[Pair, ...]:
    ends = (job.device, job.host) if job.direction == "store" else (job.host, job.device)
    return tuple(Pair(*pair) for pair in zip(*ends, job.keys, strict=True))
