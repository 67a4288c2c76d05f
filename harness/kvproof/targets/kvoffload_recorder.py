"""Record a live kvoffload engine: whatever it is asked, by whoever uses it, becomes the lines of a log.

    with recorded(engine, Path("engine.log")):
        serve(engine)

`kvproof validate engine.log` then says whether the contract explains it. In the step itself a call is only noted, with
what is not there any more a moment later; a thread of the recorder's makes lines of it. What the pools look like is
written down every so many calls.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from kvmodel.contract import Contract
from kvoffload import __name__ as kvoffload
from kvoffload.block_pool import BlockPool
from kvoffload.config import Config
from kvoffload.engine import Engine
from kvoffload.errors import DoubleFree, KVOffloadError, NotBound, UnknownBlock, UnknownJob
from kvoffload.ids import NO_BLOCK, NO_KEY, JobId, Key, Pair, RequestId, WorkerRank
from kvoffload.plan import LaunchPlan
from kvoffload.request import Phase
from kvoffload.scheduler import Admission, Deferred, LookupResult
from kvoffload.step_report import Admitted, Event, Grown, Launched, LookupReleased, Preempted, Promoted, Woken
from kvoffload.transfer_job import JobState
from kvoffload.watching import Call, new_engines_watched
from kvproof.log.entry import JSON, UNRECORDED
from kvproof.log.noting import Noting
from kvproof.log.writing import LogFile, header

LOOK_EVERY = 1024
"""After so many calls it is written down what the pools look like (count)."""

MOST_ENGINES = 100
"""Engines that are recorded of those that are made in one place (count): each keeps a file open."""

SMALL = 512
"""Blocks of pools that are looked at after every call, where engines are recorded in tests (count)."""

OF_REQUEST = ("abort", "preempt", "release_lookup", "wake", "finish", "stop")
"""Calls with a request, and nothing in their answer."""

WITH_PLANS = ("schedule", "launch")
"""Calls that answer with what was launched, if anything was."""

WITH_COLLECTIONS = ("submit", "report", "report_mark")
"""Calls whose arguments the caller may change later."""


class NotFresh(ValueError):
    """The engine has served before: its log would begin in the middle."""


@contextmanager
def recorded(engine: Engine, path: Path, look_every: int = LOOK_EVERY) -> Iterator["Recorder"]:
    """Everything that a new engine is asked in here is in the log. Raises NotFresh, OSError."""
    recorder = Recorder(engine, path, look_every)
    recorder.write_beside()
    engine.watched_by(recorder)
    try:
        yield recorder
    finally:
        engine.watched_by(None)
        recorder.close()


@dataclass(slots=True)
class Recordings:
    """Of engines that were made in one place. paths: their logs; unrecorded: engines beyond MOST_ENGINES (count)."""

    paths: list[Path] = field(default_factory=list)
    unrecorded: int = 0


@contextmanager
def engines_recorded(folder: Path) -> Iterator[Recordings]:
    """Every engine that is made in here is recorded, up to MOST_ENGINES, each in a file of its own in the folder. What
    is yielded grows as they are made. Raises OSError."""
    recordings = Recordings()
    paths = recordings.paths
    with ExitStack() as recorders:

        def recorder_of(engine: Engine) -> Recorder | None:
            if len(paths) == MOST_ENGINES:
                recordings.unrecorded += 1
                return None
            config = engine.config
            small = config.device_blocks + config.host_blocks + config.second_blocks <= SMALL
            path = folder / f"engine-{len(paths)}.log"
            recorder = Recorder(engine, path, 1 if small else LOOK_EVERY)
            recorders.callback(recorder.close)
            paths.append(path)
            return recorder

        with new_engines_watched(recorder_of):
            yield recordings


class Looks(NamedTuple):
    """What was seen of an engine at one moment. Of each pool the counts, the blocks by key, and the free blocks (None:
    not looked at), as they are in memory."""

    pools: dict[str, tuple[list[int], dict[Key, int], list[int] | None]]
    requests: JSON
    jobs: JSON


class Noted(NamedTuple):
    """A call, and what is soon gone. waiting: for whom each store of a launch is; live: whether the request that it is
    about has not ended; looks: None if nobody looked."""

    call: Call
    waiting: tuple[RequestId | None, ...]
    live: bool
    looks: Looks | None


class Recorder(Noting):
    """A watcher (kvoffload.watching) of one engine, which writes one log. `close` it.

    look_every  calls after which it is written down what the pools look like; 1: after each, for tests
    """

    def __init__(self, engine: Engine, path: Path, look_every: int = LOOK_EVERY) -> None:
        """Begins the file. Raises NotFresh, OSError, and FileExistsError if the file is there."""
        if engine.requests or engine.connector.next_job or engine.scheduler.next_step:
            raise NotFresh("the engine has served before; record it from its beginning")
        super().__init__(LogFile(path, header_of(engine.config)))
        self._look_every = look_every
        self._calls = 0
        self._awaiting: dict[JobId, set[WorkerRank]] = {}
        self._issued: JobId = 0
        self._workers = engine.config.workers

    def __call__(self, engine: Engine, call: Call) -> None:
        """Note a call that is over. This is in the engine's step: no more is done here than what would be too late."""
        if self.stopped is not None:
            return
        method, arguments, answer, error = call
        self._calls += 1
        looks = None if self._calls % self._look_every else _looks(engine, free=self._look_every == 1)
        waiting: tuple[RequestId | None, ...] = ()
        live = True
        if error is not None:
            if arguments:
                request = engine.requests.get(arguments[0])
                live = request is not None and request.phase is not Phase.DONE
        elif method in WITH_PLANS:
            plan = answer if method == "launch" else answer.plan
            if plan is not None:
                waiting = tuple([engine.jobs[copy.job].request for copy in plan.stores])
        if method in WITH_COLLECTIONS:
            call = Call(method, tuple([_kept(argument) for argument in arguments]), answer, error)
        self.note(Noted(call, waiting, live, looks))

    # Lines of a call.

    def _lines(self, noted: Noted) -> list[JSON]:
        call = noted.call
        if call.error is not None:
            lines = self._refused(noted, call.error)
        else:
            lines_of: Callable[..., list[JSON]] = self._LINES.get(call.method, Recorder._of_request)
            lines = lines_of(self, noted, *call.arguments)
        if lines and noted.looks is not None:
            lines[-1]["seen"] = _seen(noted.looks)
        return lines

    def _refused(self, noted: Noted, error: Exception) -> list[JSON]:
        """A refusal that the contract knows. Arguments that make no sense, an engine that is not bound yet, a request
        that is not there any more, and a job that nobody's worker reports are the caller's affair."""
        method, arguments = noted.call.method, noted.call.arguments
        crash = not isinstance(error, KVOffloadError | ValueError) or isinstance(error, DoubleFree | UnknownBlock)
        what = f"{type(error).__name__}: {error}"[:500]
        if isinstance(error, UnknownJob):
            if method == "expire" or not 0 <= arguments[0] < self._workers:
                return []
            return [{"do": {"verb": "forge_report", "worker": arguments[0]}, "refused": what}]
        if method == "collect" or (not crash and isinstance(error, ValueError | NotBound)):
            return []
        if method in ("submit", "promote", "lookup", "admit", "grow", *OF_REQUEST):
            if not noted.live or method == "submit":
                return []
            do: JSON = {"verb": method, "request": str(arguments[0])}
        elif method == "reset":
            do = _reset(*arguments)
        elif method in ("report", "report_mark"):
            if not crash:
                return []
            marked = method == "report_mark"
            do = _mark(*arguments[:3]) if marked else {"verb": method, "worker": arguments[0], "job": arguments[1][0]}
        elif method == "expire":
            do = {"verb": method, "job": arguments[0]}
        elif method == "declare_dead":
            do = {"verb": method, "worker": arguments[0]}
        else:
            do = {"verb": "preempt_pressure" if method == "preempt_under_pressure" else method}
        return [{"do": do, "crashed" if crash else "refused": what}]

    def _of_request(self, noted: Noted, request: RequestId) -> list[JSON]:
        return [_line(noted.call.method, request)]

    def _submit(self, _: Noted, request: RequestId, prompt: Sequence[Key], total: Sequence[Key]) -> list[JSON]:
        keys = _names(total)
        line = _line("submit", request)
        return [line | {"keys": keys[: len(prompt)], "decoded": keys[len(prompt) :]}]

    def _collect(self, _: Noted, request: RequestId) -> list[JSON]:
        return []

    def _lookup(self, noted: Noted, request: RequestId) -> list[JSON]:
        found = noted.call.answer
        if isinstance(found, Deferred):
            return [_line("lookup", request) | {"refused": f"Deferred: {found.cause}"}]
        return [_line("lookup", request) | {"did": [_found(request, found)]}]

    def _promote(self, noted: Noted, request: RequestId) -> list[JSON]:
        job = noted.call.answer
        self._issued = max(self._issued, job.id + 1)
        return [_line("promote", request) | {"did": [_promoted(request, job.pairs)]}]

    def _admit(self, noted: Noted, request: RequestId) -> list[JSON]:
        return [_line("admit", request) | {"did": [_admitted(request, noted.call.answer)]}]

    def _grow(self, noted: Noted, request: RequestId) -> list[JSON]:
        return [_line("grow", request) | {"did": [_grown(request, noted.call.answer)]}]

    def _preempt_under_pressure(self, noted: Noted) -> list[JSON]:
        victim = noted.call.answer
        if victim is None:
            return []
        return [_line("preempt_pressure") | {"did": [_decision("PreemptUnderPressure", victim)]}]

    def _launch(self, noted: Noted) -> list[JSON]:
        return [_line("launch") | {"did": [self._launched(noted.call.answer, noted.waiting)]}]

    def _handle_output(self, _: Noted) -> list[JSON]:
        return [_line("handle_output")]

    def _schedule(self, noted: Noted, may_launch: bool = True) -> list[JSON]:
        """A call that did nothing has no line: an engine that waits makes thousands."""
        did = [self._did(event, noted.waiting) for event in noted.call.answer.events]
        return [_line("schedule") | {"did": did}] if did else []

    def _did(self, event: Event, waiting: tuple[RequestId | None, ...]) -> JSON:
        match event:
            case Woken(request):
                return _decision("Wake", request)
            case Preempted(request):
                return _decision("PreemptUnderPressure", request)
            case LookupReleased(request):
                return _decision("ReleaseLookup", request)
            case Grown(request, block):
                return _grown(request, block)
            case Promoted(request, _, pairs):
                return _promoted(request, pairs)
            case Admitted(request, admission):
                return _admitted(request, admission)
            case Launched(plan):
                return self._launched(plan, waiting)
            case _:
                raise TypeError(f"a scheduling call reported {event!r:.80}")

    def _launched(self, plan: LaunchPlan, waiting: tuple[RequestId | None, ...]) -> JSON:
        for copy in (*plan.stores, *plan.load_copies, *plan.cascades, *plan.promotions):
            self._awaiting[copy.job] = set(range(self._workers))
            self._issued = max(self._issued, copy.job + 1)
        computes = [[str(share.request), share.first, share.first + len(share.writes)] for share in plan.shares]
        stores = [
            [None if request is None else str(request), _pairs(copy.pairs)]
            for request, copy in zip(waiting, plan.stores, strict=True)
        ]
        cascade = _pairs([pair for copy in plan.cascades for pair in copy.pairs])
        launched: JSON = {"action": "Launch", "computes": computes, "stores": stores, "flush": list(plan.flush)}
        return launched | ({"cascade": cascade} if cascade else {})

    def _reset(self, noted: Noted, *words: str) -> list[JSON]:
        return [{"do": _reset(*words), "answered": noted.call.answer}]

    def _report(self, _: Noted, worker: WorkerRank, jobs: Sequence[JobId], failed: Any = None) -> list[JSON]:
        """A job that was never launched nobody can have copied: that report is no worker's."""
        news = [job for job in jobs if self._credited(worker, job)]
        again = [job for job in jobs if job not in news and job < self._issued]
        said = {str(job): sorted(failed[job]) for job in news if failed and failed.get(job)}
        lines: list[JSON] = []
        if news:
            line: JSON = {"do": {"verb": "report", "worker": worker, "jobs": news}}
            lines.append(line | ({"failed": said} if said else {}))
        if again:
            lines.append({"do": {"verb": "duplicate_report", "worker": worker, "jobs": again}})
        return lines

    def _report_mark(
        self, noted: Noted, worker: WorkerRank, direction: str, mark: JobId, failed: Any = None
    ) -> list[JSON]:
        """A mark that is no news changes nothing, and workers repeat it at every poll: it has no line."""
        news = noted.call.answer
        if not news:
            return []
        said = {str(job): sorted(failed[job]) for job in news if failed and failed.get(job)}
        for job in news:
            self._credited(worker, job)
        line: JSON = {"do": _mark(worker, direction, mark)}
        return [line | ({"failed": said} if said else {})]

    def _credited(self, worker: WorkerRank, job: JobId) -> bool:
        """Whether this worker owed a report of the job; it does not any more."""
        awaiting = self._awaiting.get(job, set[WorkerRank]())
        owed = worker in awaiting
        awaiting.discard(worker)
        if not awaiting:
            self._awaiting.pop(job, None)
        return owed

    def _expire(self, _: Noted, job: JobId) -> list[JSON]:
        return [{"do": {"verb": "expire", "job": job}}]

    def _declare_dead(self, _: Noted, worker: WorkerRank) -> list[JSON]:
        """When it died nobody has seen: by now."""
        return [{"do": {"verb": verb, "worker": worker}} for verb in ("die", "declare_dead")]

    _LINES: ClassVar[dict[str, Callable[..., list[JSON]]]] = {
        "submit": _submit,
        "collect": _collect,
        "lookup": _lookup,
        "promote": _promote,
        "admit": _admit,
        "grow": _grow,
        "preempt_under_pressure": _preempt_under_pressure,
        "launch": _launch,
        "handle_output": _handle_output,
        "schedule": _schedule,
        "reset": _reset,
        "report": _report,
        "report_mark": _report_mark,
        "expire": _expire,
        "declare_dead": _declare_dead,
    }
    """All but those OF_REQUEST."""


def contract_of(config: Config) -> Contract:
    """The contract that an engine with this configuration follows."""
    return Contract(
        config.discipline,
        store_mode=config.store_mode,
        output_from=config.output_from,
        depth=config.depth,
        deadline="none" if config.deadline is None else "expire",
        admission=config.admission,
        reports=config.reports,
    )


def header_of(config: Config) -> JSON:
    """The header of the log of an engine with this configuration."""
    sizes: JSON = {
        "device_blocks": config.device_blocks,
        "host_blocks": config.host_blocks,
        "workers": config.workers,
    }
    optional = {"second_blocks": config.second_blocks, "window": config.window, "lazy_window": config.lazy_window}
    sizes |= {name: value for name, value in optional.items() if value}
    return header(kvoffload, contract_of(config), sizes) | {"runs": UNRECORDED}


def _kept(argument: Any) -> Any:
    """A copy of what somebody else may change."""
    if isinstance(argument, Mapping):
        return dict(argument)
    return tuple(argument) if isinstance(argument, list) else argument


def _looks(engine: Engine, *, free: bool) -> Looks:
    """What the engine's books say now. free: the free blocks too."""
    pools = {"device": engine.device_pool, "host": engine.host_pool}
    if engine.second_pool.size:
        pools["second"] = engine.second_pool
    requests: JSON = {}
    for number, request in engine.requests.items():
        requests[str(number)] = {
            "phase": str(request.phase),
            **({} if NO_BLOCK in request.table else {"table": list(request.table)}),
            "computed": request.computed,
            "jobs": sorted(request.jobs),
        }
    jobs: JSON = {
        str(job.id): {"direction": job.direction.lower(), "state": str(job.state), "awaiting": sorted(job.awaiting)}
        for job in engine.jobs.values()
        if job.state is not JobState.FORGOTTEN
    }
    return Looks({tier: _pool(pool, free) for tier, pool in pools.items()}, requests, jobs)


def _pool(pool: BlockPool, free: bool) -> tuple[list[int], dict[Key, int], list[int] | None]:
    return list(pool.counts), dict(pool.cache.blocks), list(pool.free_blocks()) if free else None


def _seen(looks: Looks) -> JSON:
    seen: JSON = {}
    for tier, (counts, blocks, free) in looks.pools.items():
        seen[f"{tier}_refs"] = {str(block): count for block, count in enumerate(counts) if count}
        seen[f"{tier}_keys"] = {str(block): _name(key) for key, block in blocks.items()}
        if free is not None:
            seen[f"{tier}_free"] = free
    return seen | {"requests": looks.requests, "jobs": looks.jobs}


def _line(verb: str, request: RequestId | None = None) -> JSON:
    return {"do": {"verb": verb} if request is None else {"verb": verb, "request": str(request)}}


def _reset(meaning: str, requests: str, tiers: str = "all") -> JSON:
    return {"verb": "reset", "meaning": meaning, "requests": requests, "tiers": tiers}


def _mark(worker: WorkerRank, direction: str, mark: JobId) -> JSON:
    return {"verb": "report_mark", "worker": worker, "stream": direction.lower(), "mark": mark}


def _decision(action: str, request: RequestId) -> JSON:
    return {"action": action, "request": str(request)}


def _found(request: RequestId, found: LookupResult) -> JSON:
    return _decision("Lookup", request) | {"device": list(found.device_blocks), "host": list(found.host_blocks)}


def _promoted(request: RequestId, pairs: Sequence[Pair]) -> JSON:
    return _decision("Promote", request) | {"pairs": _pairs(pairs)}


def _admitted(request: RequestId, admission: Admission) -> JSON:
    host = [pair.source for pair in admission.pairs]
    blocks = {"device": list(admission.device_blocks), "host": host, "fresh": list(admission.fresh)}
    return _decision("Admit", request) | blocks


def _grown(request: RequestId, block: int) -> JSON:
    return _decision("Grow", request) | {"blocks": [block]}


def _pairs(pairs: Sequence[Pair]) -> list[list[object]]:
    return [[pair.source, pair.destination, _name(pair.key)] for pair in pairs]


def _names(keys: Sequence[Key]) -> list[str]:
    return [_name(key) for key in keys]


def _name(key: Key) -> str:
    assert key != NO_KEY
    return f"{key:x}"
