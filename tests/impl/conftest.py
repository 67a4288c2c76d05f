"""An engine with its workers on the ledger, and the few ways in which the tests here drive it."""

from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import AdmissionMode, Config, Discipline, OutputFrom, Reports, StoreMode
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.operations import Stream
from kvoffload.runtime import Runtime


class Serving:
    """A `Runtime` on a gated ledger: nothing runs unless a test says so."""

    def __init__(self, config: Config) -> None:
        self.engine = Engine.create(config)
        self.ledger = Ledger.create(
            config.workers, config.device_blocks, config.host_blocks, second_blocks=config.second_blocks
        )
        self.runtime = Runtime(self.engine, self.ledger)

    def submit(self, request: int, prompt: str, decode: str = "") -> None:
        """One letter is one block. Equal prefixes have equal keys."""
        total = prompt + decode
        keys = tuple(int.from_bytes(total[: length + 1].encode()) for length in range(len(total)))
        self.engine.submit(request, keys[: len(prompt)], keys)

    def run(self, stream: Stream) -> None:
        """Everything that can run on this stream, on every worker."""
        while ready := [lane for lane in self.ledger.runnable() if lane[1] is stream]:
            self.ledger.run(*ready[0])

    def compute(self) -> None:
        """Launch, compute and take in the output; copies stay in flight."""
        self.runtime.schedule()
        self.run(Stream.COMPUTE)
        self.runtime.handle_output()

    def drain(self) -> None:
        """Everything that can run runs and is reported."""
        while ready := self.ledger.runnable():
            self.ledger.run(*ready[0])
        self.runtime.poll()

    def serve(self) -> None:
        """To the end of all work."""
        for _ in range(1000):
            if not self.engine.has_work():
                return
            self.runtime.step()
            self.drain()
        raise AssertionError("1000 iterations were not enough")

    def in_use(self) -> tuple[int, int]:
        """Referenced blocks: of the device, of the host."""
        device, host = self.engine.device_pool, self.engine.host_pool
        return device.size - device.free, host.size - host.free

    def cached(self) -> tuple[int, int]:
        """Keys that can be found: on the device, on the host."""
        return len(self.engine.device_pool.cache.blocks), len(self.engine.host_pool.cache.blocks)


@pytest.fixture
def serving() -> Callable[..., Serving]:
    def make(
        discipline: Discipline,
        device_blocks: int,
        host_blocks: int,
        *,
        workers: int = 1,
        store_mode: StoreMode = "eager",
        output_from: OutputFrom = "all",
        depth: int = 1,
        admission: AdmissionMode = "whole",
        reports: Reports = "per-job",
        **others: Any,
    ) -> Serving:
        modes = {"store_mode": store_mode, "output_from": output_from, "depth": depth}
        modes |= {"admission": admission, "reports": reports}
        return Serving(Config(discipline, device_blocks, host_blocks, workers, **modes, **others))

    return make
