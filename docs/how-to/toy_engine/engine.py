"""A toy engine with a prefix cache in host memory. Workers copy behind the scheduler's back and report later.

Somewhere in here is a bug that real engines had to be reviewed out of; docs/how-to/check-your-engine.md finds it.
"""

from dataclasses import dataclass, field
from itertools import takewhile


class NotNow(Exception):
    """What was asked for cannot be done now. Nothing has changed."""


class Pool:
    """The blocks of one tier: references of each, and the free ones, the oldest first."""

    def __init__(self, blocks: int) -> None:
        self.refs, self.free = [0] * blocks, list(range(blocks))

    def count(self, blocks: list[int], by: int) -> None:
        for block in blocks:
            self.refs[block] += by
        self.free = [block for block in (*self.free, *blocks) if not self.refs[block]]


@dataclass
class Request:
    """It waits while its table is empty, and loads while it has a job. Only the first `prompt` keys are looked up."""

    keys: tuple[int, ...]
    prompt: int
    table: list[int] = field(default_factory=list)
    computed: int = 0
    load: "Job | None" = None


@dataclass
class Job:
    """Copies between blocks of the device and the host. It holds them all until every worker has reported it."""

    id: int
    direction: str
    device: list[int]
    host: list[int]
    keys: list[int]
    awaiting: set[int]
    request: Request
    wanted: bool = True


@dataclass
class Step:
    """What one call of `schedule` did: admitted with (host hits, fresh blocks), computes (table, from where)."""

    finished: list[int] = field(default_factory=list)
    admitted: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    computes: dict[int, tuple[list[int], int]] = field(default_factory=dict)
    stores: list[Job] = field(default_factory=list)


class Engine:
    def __init__(self, device_blocks: int, host_blocks: int, workers: int) -> None:
        self.device, self.host = Pool(device_blocks), Pool(host_blocks)
        self.cached = dict[int, int]()  # by key, the host block that has it
        self.requests, self.jobs = dict[int, Request](), dict[int, Job]()
        self.made, self.awaited = 0, Step()
        self.streams = [{name: list[int]() for name in ("compute", "store", "load")} for _ in range(workers)]
        self.copied = [list[int]() for _ in range(workers)]

    def submit(self, number: int, keys: tuple[int, ...], prompt: int) -> None:
        self.requests[number] = Request(keys, prompt)

    def abort(self, number: int) -> None:
        if number not in self.requests:
            raise NotNow
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
        if self.awaited.computes:
            return Step()  # one at a time
        step = self.awaited = Step()
        for number, request in list(self.requests.items()):
            if request.computed == len(request.keys) and not self._to_store(request):
                self._leave(self.requests.pop(number))
                step.finished.append(number)
        for number, request in self.requests.items():
            if not request.table and len(request.keys) <= len(self.device.free):
                step.admitted[number] = self._admit(request)
        for number, request in self.requests.items():
            if copies := self._to_store(request):
                step.stores.append(self._make("store", copies, request))
            if request.load is None and request.computed < len(request.table):
                step.computes[number] = request.table, request.computed
        for streams in self.streams:
            streams["compute"] += [0] * bool(step.computes)
        return step

    def run(self, worker: int, stream: str) -> None:
        """A worker does what is next on one of its streams."""
        if not self.streams[worker][stream]:
            raise NotNow
        job = self.streams[worker][stream].pop(0)
        if stream != "compute":
            self.copied[worker].append(job)

    def handle_output(self) -> None:
        if not self.awaited.computes or any(streams["compute"] for streams in self.streams):
            raise NotNow
        for number, (table, _) in self.awaited.computes.items():
            if number in self.requests and self.requests[number].table is table:
                self.requests[number].computed = len(table)
            else:  # it left meanwhile
                self.device.count(table, -1)
        self.awaited = Step()

    def report(self, worker: int, number: int) -> None:
        """A worker has copied a job. When all have, the request that waits for a load can run."""
        job = self.jobs[number]
        self.copied[worker].remove(number)
        job.awaiting.remove(worker)
        if job.awaiting:
            return
        del self.jobs[number]
        self.device.count(job.device, -1)
        self.host.count(job.host, -1)
        if job.direction == "store":
            self.cached |= zip(job.keys, job.host, strict=True)
        if job.request.load is job:
            job.request.load, job.request.computed = None, len(job.keys)

    def _admit(self, request: Request) -> tuple[list[int], list[int]]:
        request.table = self.device.free[: len(request.keys)]
        self.device.count(request.table, +1)
        hits = [self.cached[key] for key in takewhile(self.cached.__contains__, request.keys[: request.prompt])]
        if hits:
            request.load = self._make("load", list(zip(request.table, hits, request.keys, strict=False)), request)
        return hits, request.table

    def _to_store(self, request: Request) -> list[tuple[int, int, int]]:
        """What is computed, and on the host neither now nor soon, as far as there is room: (device, host, key)."""
        soon = {key for job in self.jobs.values() if job.direction == "store" and job.wanted for key in job.keys}
        computed = zip(request.table[: request.computed], request.keys, strict=False)
        missing = [(block, key) for block, key in computed if key not in self.cached and key not in soon]
        return [(block, room, key) for (block, key), room in zip(missing, self.host.free, strict=False)]

    def _make(self, direction: str, copies: list[tuple[int, int, int]], request: Request) -> Job:
        device, host, keys = map(list, zip(*copies, strict=True))
        job = Job(self.made, direction, device, host, keys, set(range(len(self.streams))), request)
        self.made, self.jobs[job.id] = self.made + 1, job
        self.device.count(device, +1)
        self.host.count(host, +1)
        if direction == "store":  # what was there is evicted
            self.cached = {key: block for key, block in self.cached.items() if block not in host}
        for streams in self.streams:
            streams[direction].append(job.id)
        return job

    def _leave(self, request: Request) -> None:
        """The request lets go of its blocks, unless a launched step still writes them: they are released after it."""
        if request.load is not None:
            request.load.wanted = False
        if all(table is not request.table for table, _ in self.awaited.computes.values()):
            self.device.count(request.table, -1)
        request.table, request.computed, request.load = [], 0, None
