"""The gated devices with bytes, on threads and on simulated CUDA, and the ledger, without, never differ in what can be
observed.

The operations are random, and most are ordered wrongly: devices do as they are told.
"""

import random

import pytest
from tests.impl.simulated_cuda import SimulatedDriver

from kvoffload.devices.cuda import Cuda
from kvoffload.devices.device import Device, DiesOnDemand, FailsOnDemand
from kvoffload.devices.host import Host
from kvoffload.devices.ledger import Ledger
from kvoffload.operations import ENDS, UPPER_STREAMS, Compute, Content, Copy, Operation, Share, Stream, Tier

WORKERS, DEVICE_BLOCKS, HOST_BLOCKS = 2, 3, 2
SECOND_BLOCKS = 3
KEYS = 3
TURNS = 150
"""What one seed does: enough for every stream to run and to fail, and the seeds are many."""


def observed(device: Device) -> tuple[object, ...]:
    sizes = {Tier.DEVICE: DEVICE_BLOCKS, Tier.HOST: HOST_BLOCKS, Tier.SECOND: device.second_blocks}
    return (
        device.runnable(),
        list(device.misreads),
        [(device.computed(worker), device.copied(worker)) for worker in range(WORKERS)],
        {
            (tier, worker, block): device.content(tier, worker, block)
            for tier, blocks in sizes.items()
            for worker in range(WORKERS)
            for block in range(blocks)
        },
    )


class Orders:
    """Random operations; a job is waited for only by what is enqueued with it or after it."""

    def __init__(self, chance: random.Random, second: bool) -> None:
        """second: also copies between the host and a second tier"""
        self.chance = chance
        self.streams = list(Stream if second else UPPER_STREAMS)
        self.steps = 0
        self.jobs = 0

    def next(self) -> Operation:
        chance = self.chance
        stream = chance.choice(self.streams)
        if stream is Stream.COMPUTE:
            shares = tuple(Share(self._blocks(), self._blocks()) for _ in range(chance.randrange(3)))
            self.steps += 1
            return Compute(self.steps - 1, shares, self._waits(self.jobs))
        upper, lower = (HOST_BLOCKS, SECOND_BLOCKS) if Tier.SECOND in ENDS[stream] else (DEVICE_BLOCKS, HOST_BLOCKS)
        pairs = [(chance.randrange(upper), chance.randrange(lower)) for _ in range(chance.randrange(3))]
        if stream in (Stream.LOAD, Stream.PROMOTION):
            pairs = [(below, above) for above, below in pairs]
        job = self.jobs
        self.jobs += 1
        # Late in a walk some wait for themselves or for a step that may never come: neither device may run them.
        late = int(job > 40 and chance.random() < 0.1)
        return Copy(job, stream, tuple(pairs), chance.randrange(-1, self.steps + late), self._waits(job + late))

    def _blocks(self) -> tuple[tuple[int, Content], ...]:
        chance = self.chance
        return tuple(
            (block, Content(chance.randrange(KEYS), chance.randrange(2)))
            for block in chance.sample(range(DEVICE_BLOCKS), chance.randrange(3))
        )

    def _waits(self, reach: int) -> tuple[int, ...]:
        recent = range(max(0, reach - 4), reach)
        return tuple(self.chance.sample(recent, min(len(recent), self.chance.randrange(3))))


@pytest.mark.parametrize("seed", range(20))
def test_host_and_ledger_agree_after_every_call(seed: int) -> None:
    with Host(WORKERS, DEVICE_BLOCKS, HOST_BLOCKS, gated=True) as host:
        agree(host, random.Random(seed))


@pytest.mark.parametrize("seed", range(20, 30))
def test_host_and_ledger_agree_when_a_worker_dies(seed: int) -> None:
    with Host(WORKERS, DEVICE_BLOCKS, HOST_BLOCKS, gated=True) as host:
        agree(host, random.Random(seed), dying=True)


@pytest.mark.parametrize("seed", range(20))
def test_host_and_ledger_agree_with_a_second_tier(seed: int) -> None:
    with Host(WORKERS, DEVICE_BLOCKS, HOST_BLOCKS, gated=True, second_blocks=SECOND_BLOCKS) as host:
        agree(host, random.Random(seed), failing=seed % 2 == 1)


@pytest.mark.parametrize("seed", range(20))
def test_simulated_cuda_and_ledger_agree_after_every_call(seed: int) -> None:
    driver = SimulatedDriver(gpus=1 + seed % 3, haste=seed % 4, seed=seed)
    with Cuda(driver, WORKERS, DEVICE_BLOCKS, HOST_BLOCKS, gated=True, watchdog=5.0) as cuda:
        agree(cuda, random.Random(seed), failing=seed % 2 == 1)


@pytest.mark.parametrize("seed", range(20, 30))
def test_simulated_cuda_and_ledger_agree_when_a_worker_dies(seed: int) -> None:
    driver = SimulatedDriver(gpus=1 + seed % 3, haste=seed % 4, seed=seed)
    with Cuda(driver, WORKERS, DEVICE_BLOCKS, HOST_BLOCKS, gated=True, watchdog=5.0) as cuda:
        agree(cuda, random.Random(seed), dying=True)


@pytest.mark.parametrize("seed", range(20))
def test_simulated_cuda_and_ledger_agree_with_a_second_tier(seed: int) -> None:
    driver = SimulatedDriver(gpus=1 + seed % 3, haste=seed % 4, seed=seed)
    sizes = (WORKERS, DEVICE_BLOCKS, HOST_BLOCKS)
    with Cuda(driver, *sizes, gated=True, watchdog=5.0, second_blocks=SECOND_BLOCKS) as cuda:
        agree(cuda, random.Random(seed), failing=seed % 2 == 1)


def agree(other: Device, chance: random.Random, failing: bool = False, dying: bool = False) -> None:
    orders = Orders(chance, bool(other.second_blocks))
    ledger = Ledger.create(WORKERS, DEVICE_BLOCKS, HOST_BLOCKS, second_blocks=other.second_blocks)
    devices: tuple[Device, ...] = (ledger, other)
    ran = 0
    for turn in range(TURNS):
        if dying and turn == TURNS // 2:
            for device in devices:
                assert isinstance(device, DiesOnDemand)
                device.die(0)
            assert not ledger.copied(0)
            assert all(worker for worker, _ in ledger.runnable())
        runnable = ledger.runnable()
        copied = [(worker, job) for worker in range(WORKERS) for job in ledger.copied(worker)]
        doing = chance.random()
        if runnable and doing < 0.6:
            worker, stream = chance.choice(runnable)
            fails = failing and stream is not Stream.COMPUTE and chance.random() < 0.2
            for device in devices:
                if fails:
                    assert isinstance(device, FailsOnDemand)
                    device.run_failing(worker, stream)
                else:
                    device.run(worker, stream)
            ran += 1
        elif copied and doing < 0.75:
            worker, job = chance.choice(copied)
            assert other.collect(worker, job) == ledger.collect(worker, job)
        else:
            operation = orders.next()
            for worker in range(WORKERS):
                for device in devices:
                    device.enqueue(worker, operation)
        assert observed(other) == observed(ledger)
    assert ran > 50
    assert ledger.misreads
