"""Soak: streams run freely, and whatever a client may do happens meanwhile. Every byte that is served is checked.

The commands follow from the seed; their timing does not.
"""

import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.gpu.devices import Open, Opened

from kvoffload.config import Config
from kvoffload.engine import Engine
from kvoffload.operations import Content, Copy, Tier
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.step_report import Finished

MOST_ALIVE: Final = 6
PAUSE_S: Final = 0.000_2
"""How long the streams are left alone when there was nothing to do."""

MOST_TURNS: Final = 200_000
"""Of one soak: some thousand for each request that any of them waits for."""

PATIENCE_S: Final = 60.0
"""How long it may take until everything is served when nothing more is asked."""


class Soaked(NamedTuple):
    """What was done: requests that finished, jobs that were copied, resets, blocks whose bytes were checked."""

    finished: int
    jobs: int
    resets: int
    checked: int


class Soak:
    """One client of one engine on one free-running device."""

    def __init__(self, config: Config, device: Opened, seed: int) -> None:
        self.config = config
        self.device = device
        self.engine = Engine.create(config)
        self.runtime = Runtime(self.engine, device)
        self.chance = random.Random(seed)
        self.submitted = self.finished = self.resets = self.checked = 0

    def turn(self) -> None:
        """One command of the client, then one iteration of serving."""
        chance, engine = self.chance, self.engine
        alive = [number for number, request in engine.requests.items() if request.phase is not Phase.DONE]
        draw = chance.random()
        if draw < 0.4 and len(alive) < MOST_ALIVE:
            self._submit()
        elif draw < 0.43 and alive:
            request = chance.choice(alive)
            if engine.requests[request].phase is not Phase.DRAINING or engine.requests[request].returns:
                engine.abort(request)
        elif draw < 0.5 and alive:
            request = chance.choice(alive)
            if engine.requests[request].phase in (Phase.LOADING, Phase.RUNNING):
                engine.preempt(request)
        elif draw < 0.505:
            engine.reset(chance.choice(("invalidate", "evict")), chance.choice(("preempt", "keep")))
            self.resets += 1
        self._serve()

    def settle(self) -> None:
        """Ask nothing more: everything is served, and every cached block holds what its key says, on every worker."""
        deadline = time.monotonic() + PATIENCE_S
        while self.engine.has_work():
            assert time.monotonic() < deadline, f"still not served: {self.engine.requests}"
            self._serve()
        self.device.drain()
        self.runtime.poll()
        assert self.device.misreads == []
        pools = (self.engine.device_pool, self.engine.host_pool, self.engine.second_pool)
        for tier, pool in zip(Tier, pools, strict=True):
            assert pool.free == pool.size
            for key, block in pool.cache.blocks.items():
                for worker in range(self.config.workers):
                    self._holds(tier, worker, block, Content(key, self.engine.scheduler.generation))

    def _serve(self) -> None:
        """What is finished is read before it is given up. With output from the first worker the others may lag."""
        for number, request in self.engine.requests.items():
            if self.engine.can_finish(number):
                for worker in range(1 if self.config.output_from == "first" else self.config.workers):
                    for key, block in zip(request.total, request.table, strict=True):
                        self._holds(Tier.DEVICE, worker, block, Content(key, request.generation))
        report = self.runtime.step()
        if not report.events:
            time.sleep(PAUSE_S)
        self.finished += sum(isinstance(event, Finished) for event in report.events)
        for number in [n for n, request in self.engine.requests.items() if request.phase is Phase.DONE]:
            self.engine.collect(number)
        assert self.device.misreads == []

    def _submit(self) -> None:
        length = self.chance.randint(1, min(4, self.config.device_blocks))
        family = self.chance.randrange(3)
        prompt = tuple(1 + family * 10 + position for position in range(length))
        decoded = self.chance.randint(0, min(2, self.config.device_blocks - length))
        total = prompt + tuple(1000 + self.submitted * 10 + position for position in range(decoded))
        self.engine.submit(self.submitted, prompt, total)
        self.submitted += 1

    def _holds(self, tier: Tier, worker: int, block: int, expected: Content) -> None:
        found = self.device.content(tier, worker, block)
        assert found == expected, f"{tier} block {block} of w{worker} holds {found}, and should hold {expected}"
        self.checked += 1


def failing(seed: int) -> Callable[[int, Copy], tuple[int, ...]]:
    """One copy in twenty fails in one of its blocks."""
    chance = random.Random(seed)

    def faults(worker: int, copy: Copy) -> tuple[int, ...]:
        return (chance.randrange(len(copy.pairs)),) if copy.pairs and chance.random() < 0.05 else ()

    return faults


def soak(config: Config, requests: int, seed: int, open_device: Open, **options: object) -> Soaked:
    """Turns until so many requests have finished, with a settling after each 200, then one more. How many turns that
    takes depends on how fast the device is, and nothing else does."""
    sizes = config.workers, config.device_blocks, config.host_blocks
    device = open_device(*sizes, second_blocks=config.second_blocks, **options)
    try:
        soaked = Soak(config, device, seed)
        for number in range(MOST_TURNS):
            if soaked.finished >= requests:
                break
            soaked.turn()
            if number % 200 == 199:
                soaked.settle()
        assert soaked.finished >= requests, f"{soaked.finished} of {requests} requests in {MOST_TURNS} turns"
        soaked.settle()
        assert soaked.engine.reset("invalidate", "preempt") is True
        jobs = soaked.engine.connector.next_job
        return Soaked(soaked.finished, jobs, soaked.resets, soaked.checked)
    finally:
        device.close()
