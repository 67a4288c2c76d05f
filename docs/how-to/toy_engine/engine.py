"""A toy engine with a prefix cache in host memory: it stores what it computes, and loads what is there.

Workers copy behind the scheduler's back and report later. A reset, for new weights, drops the cache. Somewhere in here
is a bug that real engines had to be reviewed out of; docs/how-to/check-your-engine.md finds it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile


class NotNow(Exception):
    """What was asked for cannot be done now. Nothing has changed."""


class Pool:
    """One tier's blocks: references of each, and the free ones, the oldest first."""

    def __init__(self, blocks: int) -> None:
        self.refs, self.free = [0] * blocks, list(range(blocks))

    def hold(self, blocks: Sequence[int]) -> None:
        self.free = [block for block in self.free if block not in blocks]
        for block in blocks:
            self.refs[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            self.refs[block] -= 1
        self.free += [block for block in blocks if not self.refs[block]]


@dataclass
class Request:
    """It waits while its table is empty, and loads while it has a job. Only the first `prompt` keys are looked up."""

    keys: Sequence[int]
    prompt: int
    table: list[int] = field(default_factory=list)
    computed: int = 0
    load: "Job | None" = None


@dataclass
class Job:
    """Copies of (source, destination, key). It holds every block until all workers have reported it."""

    id: int
    direction: str
    pairs: list[tuple[int, int, int]]
    awaiting: set[int]
    request: Request
    wanted: bool = True


@dataclass
class Step:
    """What one call of `schedule` did: who ended; who was admitted, with host hits and fresh blocks; (request, table,
    start) of what is computed; the jobs that were made."""

    finished: list[int] = field(default_factory=list)
    admitted: list[tuple[int, list[int], list[int]]] = field(default_factory=list)
    computes: list[tuple[int, list[int], int]] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)


class Engine:
    def __init__(self, device_blocks: int, host_blocks: int, workers: int) -> None:
        self.device, self.host = Pool(device_blocks), Pool(host_blocks)
        self.cached = dict[int, int]()  # by key, the host block that has it
        self.requests, self.jobs = dict[int, Request](), dict[int, Job]()
        self.made, self.awaited = 0, Step()
        self.streams = [{name: deque[int]() for name in ("compute", "store", "load")} for _ in range(workers)]
        self.copied = [list[int]() for _ in range(workers)]

    def submit(self, number: int, keys: Sequence[int], prompt: int) -> Request:
        self.requests[number] = Request(keys, prompt)
        return self.requests[number]

    def abort(self, number: int) -> None:
        if number not in self.requests:
            raise NotNow(f"request {number} is not there")
        self._leave(self.requests.pop(number))

    def reset(self) -> bool:
        """The weights changed: every request starts again, nothing cached is any good. True: nothing old is left."""
        for request in self.requests.values():
            self._leave(request)
        for job in self.jobs.values():
            job.wanted = False
        self.cached.clear()
        return not self.jobs

    def schedule(self) -> Step:
        step = Step()
        if self.awaited.computes:
            return step  # one at a time
        for number, request in list(self.requests.items()):
            if request.table and request.computed == len(request.keys) and not self._to_store(request):
                self._leave(self.requests.pop(number))
                step.finished.append(number)
        for number, request in self.requests.items():
            if not request.table and not self._admit(number, request, step):
                break
        for number, request in self.requests.items():
            if pairs := self._to_store(request):
                taken = [block for _, block, _ in pairs]
                self.cached = {key: block for key, block in self.cached.items() if block not in taken}
                self._make("store", pairs, request, step)
            if request.load is None and request.computed < len(request.table):
                step.computes.append((number, request.table, request.computed))
        for streams in self.streams:
            streams["compute"].extend([0] * bool(step.computes))
            for job in step.jobs:
                streams[job.direction].append(job.id)
        self.awaited = step
        return step

    def run(self, worker: int, stream: str) -> None:
        """A worker does what is next on one of its streams."""
        if not self.streams[worker][stream]:
            raise NotNow(f"the {stream} stream is empty")
        job = self.streams[worker][stream].popleft()
        if stream != "compute":
            self.copied[worker].append(job)

    def handle_output(self) -> None:
        if not self.awaited.computes or any(streams["compute"] for streams in self.streams):
            raise NotNow("no step has been computed everywhere")
        for number, table, _ in self.awaited.computes:
            if number in self.requests and self.requests[number].table is table:
                self.requests[number].computed = len(table)
            else:  # it left meanwhile
                self.device.release(table)
        self.awaited = Step()

    def report(self, worker: int, number: int) -> Request | None:
        """Returns the request that can run from now on, its load being complete."""
        self.copied[worker].remove(number)
        job = self.jobs[number]
        job.awaiting.discard(worker)
        if job.awaiting:
            return None
        del self.jobs[number]
        if job.direction == "store":
            self.cached |= {key: block for _, block, key in job.pairs}
        self._tier(job, 0).release([pair[0] for pair in job.pairs])
        self._tier(job, 1).release([pair[1] for pair in job.pairs])
        if job.request.load is not job:
            return None
        job.request.load, job.request.computed = None, len(job.pairs)
        return job.request

    def _admit(self, number: int, request: Request, step: Step) -> bool:
        fresh = self.device.free[: len(request.keys)]
        if len(fresh) < len(request.keys):
            return False
        self.device.hold(fresh)
        request.table = fresh
        hits = [self.cached[key] for key in takewhile(self.cached.__contains__, request.keys[: request.prompt])]
        if hits:
            request.load = self._make("load", list(zip(hits, fresh, request.keys, strict=False)), request, step)
        step.admitted.append((number, hits, fresh))
        return True

    def _to_store(self, request: Request) -> list[tuple[int, int, int]]:
        """What is computed, and on the host neither now nor soon, as far as there is room."""
        soon = {key for job in self.jobs.values() if job.direction == "store" and job.wanted for *_, key in job.pairs}
        computed = zip(request.table[: request.computed], request.keys, strict=False)
        missing = [(block, key) for block, key in computed if key not in self.cached and key not in soon]
        return [(block, room, key) for (block, key), room in zip(missing, self.host.free, strict=False)]

    def _make(self, direction: str, pairs: list[tuple[int, int, int]], request: Request, step: Step) -> Job:
        job = self.jobs[self.made] = Job(self.made, direction, pairs, set(range(len(self.streams))), request)
        self.made += 1
        self._tier(job, 0).hold([pair[0] for pair in pairs])
        self._tier(job, 1).hold([pair[1] for pair in pairs])
        step.jobs.append(job)
        return job

    def _tier(self, job: Job, end: int) -> Pool:
        return self.device if (job.direction == "store") == (end == 0) else self.host

    def _leave(self, request: Request) -> None:
        """The request lets go of its blocks, unless a launched step still writes them: they are released after it."""
        if request.load is not None:
            request.load.wanted = False
        if all(table is not request.table for _, table, _ in self.awaited.computes):
            self.device.release(request.table)
        request.table, request.computed, request.load = [], 0, None
