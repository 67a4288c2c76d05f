"""Operations for a host device in few words, a script of random ones, and a gated device to run them on."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

from kvoffload.devices.device import Device
from kvoffload.devices.host import Host
from kvoffload.operations import (
    UPPER_STREAMS,
    Compute,
    Content,
    Copy,
    Operation,
    Share,
    Stream,
    Tier,
    Unreadable,
)

UPPER = (Tier.DEVICE, Tier.HOST)
PATIENCE = 30.0
A, B, C = Content(1, 0), Content(2, 0), Content(3, 0)
UNWRITTEN = Unreadable.UNWRITTEN


def compute(
    step: int,
    writes: dict[int, Content] | None = None,
    reads: dict[int, Content] | None = None,
    jobs: tuple[int, ...] = (),
) -> Compute:
    return Compute(step, (Share(tuple((reads or {}).items()), tuple((writes or {}).items())),), jobs)


def store(job: int, device: int, host: int, step: int = -1, jobs: tuple[int, ...] = ()) -> Copy:
    return Copy(job, Stream.STORE, ((device, host),), step, jobs)


def load(job: int, host: int, device: int, step: int = -1, jobs: tuple[int, ...] = ()) -> Copy:
    return Copy(job, Stream.LOAD, ((host, device),), step, jobs)


@contextmanager
def gated(workers: int = 1, watchdog: float = PATIENCE) -> Iterator[Host]:
    with Host(workers, 4, 4, gated=True, watchdog=watchdog) as device:
        yield device


def streams(device: Host, worker: int = 0) -> set[Stream]:
    return {stream for at, stream in device.runnable() if at == worker}


def run_all(device: Device) -> list[tuple[int, Stream]]:
    order: list[tuple[int, Stream]] = []
    while runnable := device.runnable():
        device.run(*runnable[0])
        order.append(runnable[0])
    return order


class Script:
    """A random, correctly ordered workload for one worker, and what every block must hold in the end."""

    def __init__(self, seed: int, length: int) -> None:
        chance = random.Random(seed)
        self.operations: list[Operation] = []
        self.tiers: dict[Tier, dict[int, Content]] = {Tier.DEVICE: {}, Tier.HOST: {}}
        self.jobs: dict[Stream, list[int]] = {Stream.STORE: [], Stream.LOAD: []}
        device, host = self.tiers[Tier.DEVICE], self.tiers[Tier.HOST]
        step = job = 0
        fence: list[int] = []
        for _ in range(length):
            kind = chance.choice([stream for stream in UPPER_STREAMS if self._possible(stream)])
            if kind is Stream.COMPUTE:
                block = chance.randrange(4)
                reads = {other: content for other, content in device.items() if other != block}
                device[block] = Content(chance.randrange(1000), chance.randrange(2))
                self.operations.append(compute(step, {block: device[block]}, reads, tuple(fence)))
                step, fence = step + 1, []
                continue
            source, target = (device, host) if kind is Stream.STORE else (host, device)
            pair = (chance.choice(sorted(source)), chance.randrange(4))
            target[pair[1]] = source[pair[0]]
            self.operations.append(Copy(job, kind, (pair,), step - 1, tuple(range(job))))
            self.jobs[kind].append(job)
            fence.append(job)
            job += 1

    def _possible(self, stream: Stream) -> bool:
        source = {Stream.COMPUTE: None, Stream.STORE: Tier.DEVICE, Stream.LOAD: Tier.HOST}[stream]
        return source is None or bool(self.tiers[source])

    def verify(self, device: Device, worker: int) -> None:
        assert device.misreads == []
        for tier, blocks in self.tiers.items():
            for block in range(4):
                assert device.content(tier, worker, block) == blocks.get(block, UNWRITTEN)
        ran = device.copied(worker)
        for jobs in self.jobs.values():
            assert [job for job in ran if job in set(jobs)] == jobs
