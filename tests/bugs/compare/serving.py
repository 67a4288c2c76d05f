"""An engine with workers under test as one would test it without a model: random commands, invariants on its books.

Nothing here knows what should happen next. What is asked after each command is what an engineer asks of such books: the
free queue holds the unreferenced blocks, each once; every reference has an owner; the index is a one-to-one map; what
can be found in a cache is what every worker has there; nothing was read that was not there. In the end, without further
commands, everything must drain.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from kvoffload.block_pool import BlockPool
from kvoffload.config import Config
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import UnknownJob
from kvoffload.ids import JobId, Meaning, Survivors, WorkerRank
from kvoffload.operations import Content, Stream, Tier
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.transfer_job import JobState

T = TypeVar("T")


class Pick(Protocol):
    """Chooses one of several: Hypothesis draws it, or a random number."""

    def __call__(self, options: Sequence[T], /) -> T: ...


PROMPTS = ((1,), (1, 2), (1, 3), (4,), (4, 5), (6,), (1, 2, 7))
ROUNDS = 400
"""Iterations of serving after which whatever is left counts as stuck."""


class Serving:
    """One engine, its workers, and what was reported to it."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        config = Config(
            discipline=pick(("pinning", "fencing")),
            device_blocks=pick((3, 4)),
            host_blocks=pick((1, 2, 3)),
            workers=pick((1, 2)),
            store_mode=pick(("eager", "lazy")),
            output_from=pick(("all", "first")),
            depth=pick((1, 2)),
        )
        self.device = Ledger.create(config.workers, config.device_blocks, config.host_blocks)
        self.engine = Engine.create(config)
        self.runtime = Runtime(self.engine, self.device)
        self.next_request = 0
        self.reported: list[tuple[WorkerRank, JobId]] = []

    # Commands: each does something that is possible now, or nothing.

    def submit(self) -> None:
        prompt = self.pick(PROMPTS)
        more = self.pick(((), (10 + self.next_request,)))
        total = (*prompt, *more)
        if len(total) <= self.engine.config.device_blocks:
            self.engine.submit(self.next_request, prompt, total)
            self.next_request += 1

    def step(self) -> None:
        self._collect()
        self.runtime.step()

    def run_operation(self) -> None:
        runnable = self.device.runnable()
        if runnable:
            self.device.run(*self.pick(runnable))

    def fail_copy(self) -> None:
        runnable = [one for one in self.device.runnable() if one[1] is not Stream.COMPUTE]
        if runnable:
            self.device.run_failing(*self.pick(runnable))

    def deliver(self) -> None:
        done = [(rank, job) for rank in range(self.engine.config.workers) for job in self.device.copied(rank)]
        if done:
            rank, job = self.pick(done)
            self.runtime.deliver(rank, (job,))
            self.reported.append((rank, job))

    def report_again(self) -> None:
        if self.reported:
            rank, job = self.pick(self.reported)
            self.engine.report(rank, (job,))

    def report_forged(self) -> None:
        try:
            self.engine.report(0, (10_000,))
        except UnknownJob:
            return
        raise AssertionError("a job that was never issued was reported, and taken in")

    def lookup(self) -> None:
        waiting = [request for request in self.engine.requests if self.engine.can_lookup(request)]
        if waiting:
            self.engine.lookup(self.pick(waiting))

    def preempt(self) -> None:
        held = [number for number, one in self.engine.requests.items() if one.phase in (Phase.LOADING, Phase.RUNNING)]
        if held:
            self.engine.preempt(self.pick(held))

    def abort(self) -> None:
        alive = [
            number
            for number, one in self.engine.requests.items()
            if one.phase is not Phase.DONE and (one.phase is not Phase.DRAINING or one.returns)
        ]
        if alive:
            self.engine.abort(self.pick(alive))

    def reset(self) -> None:
        meaning: Meaning = self.pick(("invalidate", "evict"))
        requests: Survivors = self.pick(("preempt", "keep"))
        done = self.engine.reset(meaning, requests)
        assert not self.engine.host_pool.cache.blocks, "a reset left keys on the host"
        assert not self.engine.device_pool.cache.blocks, "a reset left keys on the device"
        if done and self.engine.config.discipline == "pinning":
            assert not self.engine.jobs, "a reset is over while transfers run"

    # What must hold.

    def check(self) -> None:
        for pool in (self.engine.device_pool, self.engine.host_pool):
            self._check_pool(pool)
        device, host = self._owners()
        assert device == Counter({b: n for b, n in enumerate(self.engine.device_pool.counts) if n}), "device owners"
        assert host == Counter({b: n for b, n in enumerate(self.engine.host_pool.counts) if n}), "host owners"
        assert not self.device.misreads, "a compute read what was not there"
        if self.engine.config.output_from == "all":
            self._check_contents(Tier.DEVICE, self.engine.device_pool)
        self._check_contents(Tier.HOST, self.engine.host_pool)

    def drain(self) -> None:
        for _ in range(ROUNDS):
            for worker, stream in self.device.runnable():
                self.device.run(worker, stream)
            self.step()
            if not self.engine.has_work() and not self.device.runnable() and not self.runtime.can_launch():
                break
        self._collect()
        self.check()
        assert not self.engine.requests, "requests are stuck"
        assert not any(self.engine.device_pool.counts), "device blocks are lost"
        assert not any(self.engine.host_pool.counts), "host blocks are lost"

    def _collect(self) -> None:
        for number in [number for number, one in self.engine.requests.items() if one.phase is Phase.DONE]:
            self.engine.collect(number)

    def _check_pool(self, pool: BlockPool) -> None:
        free = []
        for block in pool.free_blocks():
            free.append(block)
            assert len(free) <= pool.size, "the free queue is longer than the pool"
        assert sorted(free) == [block for block, count in enumerate(pool.counts) if not count], "free queue"
        assert len(free) == pool.free, "length of the free queue"
        keys = {key: block for block, key in enumerate(pool.cache.keys) if key}
        assert keys == pool.cache.blocks, "index"

    def _owners(self) -> tuple[Counter[int], Counter[int]]:
        device: Counter[int] = Counter()
        host: Counter[int] = Counter()
        for request in self.engine.requests.values():
            device.update(request.table)
            if request.pins is not None:
                device.update(request.pins.device)
                host.update(request.pins.host)
        for step in self.engine.scheduler.pipeline:
            for share in step.shares.values():
                device.update(share.blocks if share.left else ())
        for job in self.engine.jobs.values():
            if job.state is not JobState.FORGOTTEN:
                host.update(job.host_blocks)
                device.update(job.device_blocks if self.engine.config.discipline == "pinning" else ())
        return device, host

    def _check_contents(self, tier: Tier, pool: BlockPool) -> None:
        for key, block in pool.cache.blocks.items():
            for worker in range(self.engine.config.workers):
                there = self.device.content(tier, worker, block)
                assert there == Content(key, self.engine.scheduler.generation), "a cached block holds something else"


COMMANDS = (
    "submit", "step", "run_operation", "deliver", "fail_copy", "report_again", "report_forged", "lookup", "preempt",
    "abort", "reset",
)  # fmt: skip
