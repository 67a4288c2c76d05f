"""Random commands, seeded, on the ledger. After each one every reference has an owner, and every read was right.

Then the environment becomes kind, and everything must come to an end: no request stuck, no block left behind.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.impl.owners import owners

from kvoffload.config import Discipline, OutputFrom, StoreMode
from kvoffload.operations import Content, Tier
from kvoffload.request import Phase

Make = Callable[..., Any]

PROMPTS = ["ab", "abc", "ad", "x", "xy", "abce", "q"]


def check(s: Any) -> None:
    engine = s.engine
    for pool, held in zip((engine.device_pool, engine.host_pool), owners(engine), strict=True):
        assert pool.counts == [held[block] for block in range(pool.size)]
        free = list(pool.free_blocks())
        assert sorted(free) == [block for block in range(pool.size) if not pool.counts[block]]
        assert len(free) == pool.free
        assert pool.cache.blocks == {key: block for block, key in enumerate(pool.cache.keys) if key}
    assert s.ledger.misreads == []
    generation = engine.scheduler.generation
    for worker in range(engine.config.workers):
        for key, block in engine.host_pool.cache.blocks.items():
            assert s.ledger.content(Tier.HOST, worker, block) == Content(key, generation)
        if engine.config.output_from == "all" or worker == 0:  # the others may lag behind by a step
            for key, block in engine.device_pool.cache.blocks.items():
                assert s.ledger.content(Tier.DEVICE, worker, block) == Content(key, generation)


class Driver:
    """Commands of clients, workers and a scheduler, chosen at random from those that are possible."""

    def __init__(self, s: Any, chance: random.Random) -> None:
        self.s = s
        self.chance = chance
        self.next_request = 0
        self.reports: list[tuple[int, int]] = []

    def command(self) -> None:
        s, chance, engine = self.s, self.chance, self.s.engine
        alive = [number for number, request in engine.requests.items() if request.phase is not Phase.DONE]
        draw = chance.random()
        if draw < 0.12 and len(alive) < 5:
            prompt = chance.choice(PROMPTS)
            s.submit(self.next_request, prompt, chance.choice(["", "1", "12"])[: 4 - len(prompt)])
            self.next_request += 1
        elif draw < 0.14 and alive:
            request = chance.choice(alive)
            if engine.requests[request].phase is not Phase.DRAINING or engine.requests[request].returns:
                engine.abort(request)
        elif draw < 0.17 and alive:
            request = chance.choice(alive)
            held = engine.requests[request]
            if chance.random() < 0.2 and len(held.prompt) <= held.computed < len(held.total):
                engine.stop(request)
            elif held.phase in (Phase.LOADING, Phase.RUNNING):
                engine.preempt(request)
        elif draw < 0.18:
            self.reset()
        elif draw < 0.21 and alive:
            request = chance.choice(alive)
            if engine.requests[request].pins is not None and chance.random() < 0.5:
                engine.release_lookup(request)
            elif engine.can_lookup(request):
                engine.lookup(request)
        elif draw < 0.23 and self.reports:
            worker, job = chance.choice(self.reports)
            engine.report(worker, [job])
        elif draw < 0.38:
            self.deliver()
        elif draw < 0.50:
            s.runtime.schedule()
        elif draw < 0.65 and s.runtime.can_handle_output():
            s.runtime.handle_output()
        elif draw < 0.72:
            for request in alive:
                if engine.can_finish(request):
                    self.finish(request)
            for request in set(engine.requests) - set(alive):
                engine.collect(request)
        elif lanes := s.ledger.runnable():
            s.ledger.run(*chance.choice(lanes))

    def reset(self) -> None:
        engine = self.s.engine
        meaning = self.chance.choice(["invalidate", "evict"])
        survivors = self.chance.choice(["preempt", "keep"])
        done = engine.reset(meaning, survivors)
        assert self.s.cached() == (0, 0)
        if done and engine.config.discipline == "pinning":
            assert len(engine.jobs) == 0

    def deliver(self) -> None:
        worker = self.chance.randrange(self.s.engine.config.workers)
        copied = list(self.s.ledger.copied(worker))
        self.chance.shuffle(copied)
        batch = copied[: self.chance.randrange(3)]
        self.s.runtime.deliver(worker, batch)
        self.reports += [(worker, job) for job in batch]

    def finish(self, number: int) -> None:
        engine = self.s.engine
        request = engine.requests[number]
        expected = [Content(key, request.generation) for key in request.total]
        assert [self.s.ledger.content(Tier.DEVICE, 0, block) for block in request.table] == expected
        engine.finish(number)


@pytest.mark.parametrize("output_from", ["all", "first"])
@pytest.mark.parametrize("store_mode", ["eager", "lazy"])
@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_references_and_reads(
    serving: Make, seed: int, depth: int, discipline: Discipline, store_mode: StoreMode, output_from: OutputFrom
) -> None:
    chance = random.Random(seed)
    blocks = chance.choice([4, 5, 6]), chance.choice([2, 3, 6])
    s = serving(discipline, *blocks, workers=2, store_mode=store_mode, output_from=output_from, depth=depth)
    driver = Driver(s, chance)
    for _ in range(3000):
        driver.command()
        check(s)
    assert s.engine.scheduler.next_step > 50
    assert store_mode == "lazy" or s.engine.connector.next_job > 40
    s.serve()
    check(s)
    assert {request.phase for request in s.engine.requests.values()} == {Phase.DONE}
    assert s.in_use() == (0, 0)
    assert s.engine.reset("invalidate", "preempt") is True
