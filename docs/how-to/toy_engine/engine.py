"""A toy engine that offloads its KV cache to host memory: it stores what it computes, and loads what it lost.

Workers copy behind the scheduler's back and report later. A reset, for new weights, drops both prefix caches. Somewhere
in here is a bug that real engines had to be reviewed out of; docs/how-to/check-your-engine.md finds it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

WAITING, LOADING, RUNNING, DONE = "waiting", "loading", "running", "done"


class NotNow(Exception):
    """What was asked for cannot be done now. Nothing has changed."""


class Pool:
    """One tier's blocks: references, the key that each can be hit under (0: none), free ones with the oldest first."""

    def __init__(self, blocks: int) -> None:
        self.refs = [0] * blocks
        self.keys = [0] * blocks
        self.free = list(range(blocks))

    def longest_hit(self, keys: Sequence[int]) -> list[int]:
        cached = 0
        while cached < len(keys) and keys[cached] in self.keys:
            cached += 1
        return [self.keys.index(key) for key in keys[:cached]]

    def take(self) -> int:
        block = self.free.pop(0)
        self.refs[block], self.keys[block] = 1, 0
        return block

    def touch(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if not self.refs[block]:
                self.free.remove(block)
            self.refs[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            self.refs[block] -= 1
            if not self.refs[block]:
                self.free.append(block)

    def publish(self, block: int, key: int) -> None:
        if key not in self.keys:
            self.keys[block] = key

    def clear(self) -> None:
        self.keys = [0] * len(self.keys)


@dataclass
class Request:
    """A request: `prompt` keys that can be hit, and after them those of blocks that it decodes."""

    id: int
    keys: Sequence[int]
    prompt: int
    state: str = WAITING
    table: list[int] = field(default_factory=list)
    computed: int = 0
    load: "Job | None" = None


@dataclass
class Job:
    """Copies of (source, destination, key) on every worker. It has a reference on each block until all reported."""

    id: int
    direction: str
    pairs: list[tuple[int, int, int]]
    awaiting: set[int]
    request: Request | None = None
    launched: bool = False
    wanted: bool = True


@dataclass
class Share:
    """One request's part of a launched step, which computes table[start:]. A request that left leaves its blocks."""

    request: Request
    table: list[int]
    start: int
    left: bool = False


@dataclass
class Step:
    """What one call of `schedule` did."""

    finished: list[int] = field(default_factory=list)
    woken: list[int] = field(default_factory=list)
    admitted: list[tuple[int, list[int], list[int], list[int]]] = field(default_factory=list)
    computes: list[Share] = field(default_factory=list)
    stores: list[Job] = field(default_factory=list)
    launched: bool = False


class Worker:
    """One rank: a stream each for compute, stores and loads. A store waits for the computes launched before it."""

    def __init__(self) -> None:
        self.streams: dict[str, deque[tuple[int, int]]] = {"compute": deque(), "store": deque(), "load": deque()}
        self.launched = self.computed = 0
        self.copied: list[int] = []

    def can_run(self, stream: str) -> bool:
        return bool(self.streams[stream]) and self.streams[stream][0][1] <= self.computed

    def run(self, stream: str) -> None:
        if not self.can_run(stream):
            raise NotNow(f"the {stream} stream has nothing that can run")
        job, _ = self.streams[stream].popleft()
        if stream == "compute":
            self.computed += 1
        else:
            self.copied.append(job)


class Engine:
    def __init__(self, device_blocks: int, host_blocks: int, workers: int) -> None:
        self.device, self.host = Pool(device_blocks), Pool(host_blocks)
        self.workers = [Worker() for _ in range(workers)]
        self.requests: dict[int, Request] = {}
        self.jobs: dict[int, Job] = {}
        self.next_job = 0
        self.awaited: list[Share] = []

    # The client.

    def submit(self, number: int, keys: Sequence[int], prompt: int) -> None:
        self.requests[number] = Request(number, keys, prompt)

    def abort(self, number: int) -> None:
        request = self.requests.get(number)
        if request is None or request.state == DONE:
            raise NotNow(f"request {number} is not there")
        self._leave(request, DONE)

    def preempt(self, number: int) -> None:
        request = self.requests.get(number)
        if request is None or request.state not in (LOADING, RUNNING):
            raise NotNow(f"request {number} holds nothing")
        self._leave(request, WAITING)

    def reset(self) -> bool:
        """The weights changed: every request starts again, nothing cached is any good. True: nothing old is left."""
        for request in self.requests.values():
            if request.state in (LOADING, RUNNING):
                self._leave(request, WAITING)
        for job in self.jobs.values():
            job.wanted = False
        self.device.clear()
        self.host.clear()
        return not self.jobs

    # The scheduler.

    def schedule(self) -> Step:
        step = Step()
        for request in self.requests.values():
            if request.state == RUNNING and request.computed == len(request.keys):
                self._leave(request, DONE)
                step.finished.append(request.id)
            elif request.state == LOADING and request.load is None:
                request.state = RUNNING
                step.woken.append(request.id)
        for request in self.requests.values():
            if request.state == WAITING and not self._admit(request, step):
                break
        if not self.awaited:
            self._launch(step)
        return step

    def handle_output(self) -> None:
        if not self.awaited or any(worker.computed < worker.launched for worker in self.workers):
            raise NotNow("no step has been computed everywhere")
        for share in self.awaited:
            if share.left:
                self.device.release(share.table)
                continue
            share.request.computed = len(share.table)
            for position in range(share.start, len(share.table)):
                self.device.publish(share.table[position], share.request.keys[position])
        self.awaited = []

    def report(self, worker: int, number: int) -> None:
        self.workers[worker].copied.remove(number)
        job = self.jobs[number]
        job.awaiting.discard(worker)
        if job.awaiting:
            return
        tier = self.host if job.direction == "store" else self.device
        for _, destination, key in job.pairs:
            tier.publish(destination, key)
        if job.request is not None and job.request.load is job:
            job.request.load = None
            job.request.computed += len(job.pairs)
        self._drop(job)

    def _admit(self, request: Request, step: Step) -> bool:
        hits = self.device.longest_hit(request.keys[: request.prompt])
        on_host = self.host.longest_hit(request.keys[len(hits) : request.prompt])
        needed = len(request.keys) - len(hits)
        if needed > len(self.device.free) - sum(not self.device.refs[block] for block in hits):
            return False
        self.device.touch(hits)
        fresh = [self.device.take() for _ in range(needed)]
        request.table, request.computed, request.state = hits + fresh, len(hits), RUNNING
        if on_host:
            self.host.touch(on_host)
            loaded = fresh[: len(on_host)]
            self.device.touch(loaded)
            keys = request.keys[len(hits) : len(hits) + len(on_host)]
            request.load = self._job("load", list(zip(on_host, loaded, keys, strict=True)), request)
            request.state = LOADING
        step.admitted.append((request.id, hits, on_host, fresh))
        return True

    def _launch(self, step: Step) -> None:
        running = [request for request in self.requests.values() if request.state == RUNNING]
        step.computes = [Share(r, list(r.table), r.computed) for r in running if r.computed < len(r.table)]
        on_its_way = {
            key for job in self.jobs.values() if job.direction == "store" and job.wanted for *_, key in job.pairs
        }
        for request in running:
            pairs = []
            for block, key in zip(request.table, request.keys, strict=True):
                if key not in self.host.keys and key not in on_its_way and self.host.free:
                    pairs.append((block, self.host.take(), key))
                    on_its_way.add(key)
            if pairs:
                self.device.touch([block for block, *_ in pairs])
                step.stores.append(self._job("store", pairs))
        queued = [job for job in self.jobs.values() if not job.launched]
        step.launched = bool(step.computes or queued)
        self.awaited = step.computes
        for worker in self.workers:
            if step.computes:
                worker.streams["compute"].append((0, 0))
                worker.launched += 1
            for job in queued:
                worker.streams[job.direction].append((job.id, worker.launched if job.direction == "store" else 0))
        for job in queued:
            job.launched = True

    def _job(self, direction: str, pairs: list[tuple[int, int, int]], request: Request | None = None) -> Job:
        job = Job(self.next_job, direction, pairs, set(range(len(self.workers))), request)
        self.jobs[job.id] = job
        self.next_job += 1
        return job

    def _drop(self, job: Job) -> None:
        """The job is over: it gives up its references."""
        source, destination = (self.device, self.host) if job.direction == "store" else (self.host, self.device)
        source.release([pair[0] for pair in job.pairs])
        destination.release([pair[1] for pair in job.pairs])
        del self.jobs[job.id]

    def _leave(self, request: Request, state: str) -> None:
        """The request lets go of its blocks, those excepted that a launched step or load still writes."""
        if request.load is not None and not request.load.launched:
            self._drop(request.load)
        elif request.load is not None:
            request.load.wanted = False
        shares = [share for share in self.awaited if share.request is request and not share.left]
        for share in shares:
            share.left = True
        if not shares:
            self.device.release(request.table)
        request.table, request.computed, request.load, request.state = [], 0, None, state
