"""What must hold of an engine at any time, as one asks it without a model: of its books and of what its blocks hold."""

from collections import Counter

from kvoffload.block_pool import BlockPool
from kvoffload.cache_events import AllCleared, BlockStored
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.ids import NO_BLOCK, Key
from kvoffload.operations import Content, Tier
from kvoffload.request import Phase
from tests.impl.owners import owners


class Index:
    """What can be found in each cache, as somebody knows it who was told of the events alone."""

    def __init__(self) -> None:
        self.keys: dict[Tier, set[Key]] = {tier: set() for tier in Tier}

    def hear(self, engine: Engine) -> None:
        """Take in what has happened since the last time, and compare."""
        for event in engine.take_events():
            known = self.keys[event.tier]
            if isinstance(event, AllCleared):
                known.clear()
            elif isinstance(event, BlockStored):
                assert event.key not in known, "a key was announced that could be found already"
                known.add(event.key)
            else:
                assert event.key in known, "a key was said to be gone that could not be found"
                known.discard(event.key)
        assert self.keys[Tier.DEVICE] == engine.device_pool.cache.blocks.keys(), "what was announced of the device"
        assert self.keys[Tier.HOST] == engine.host_pool.cache.blocks.keys(), "what was announced of the host"


def check(engine: Engine, device: Ledger, index: Index) -> None:
    """Raises AssertionError for the first thing that does not hold."""
    for pool in (engine.device_pool, engine.host_pool):
        _check_pool(pool)
    of_device, of_host = owners(engine)
    assert of_device == Counter({b: n for b, n in enumerate(engine.device_pool.counts) if n}), "device owners"
    assert of_host == Counter({b: n for b, n in enumerate(engine.host_pool.counts) if n}), "host owners"
    assert not device.misreads, "a compute read what was not there"
    deciding = engine.config.workers if engine.config.output_from == "all" else 1
    _check_contents(engine, device, Tier.DEVICE, deciding)
    _check_contents(engine, device, Tier.HOST, engine.config.workers)
    _check_tables(engine, device, deciding)
    index.hear(engine)


def _check_pool(pool: BlockPool) -> None:
    free = []
    for block in pool.free_blocks():
        free.append(block)
        assert len(free) <= pool.size, "the free queue is longer than the pool"
    assert sorted(free) == [block for block, count in enumerate(pool.counts) if not count], "free queue"
    assert len(free) == pool.free, "length of the free queue"
    keys = {key: block for block, key in enumerate(pool.cache.keys) if key}
    assert keys == pool.cache.blocks, "index"


def _check_contents(engine: Engine, device: Ledger, tier: Tier, workers: int) -> None:
    """What can be found in a cache is what the first `workers` have there: the others may lag behind."""
    pool = engine.device_pool if tier is Tier.DEVICE else engine.host_pool
    for key, block in pool.cache.blocks.items():
        for worker in range(workers):
            there = device.content(tier, worker, block)
            assert there == Content(key, engine.scheduler.generation), "a cached block holds something else"


def _check_tables(engine: Engine, device: Ledger, workers: int) -> None:
    """What a request that runs has computed is in its blocks."""
    for request in engine.requests.values():
        if request.phase is not Phase.RUNNING:
            continue
        for key, block in list(zip(request.total, request.table, strict=False))[: request.computed]:
            for worker in range(workers if block != NO_BLOCK else 0):
                there = device.content(Tier.DEVICE, worker, block)
                assert there == Content(key, request.generation), "a block of a request holds something else"
