"""Gated walks: the same commands to an engine on a device and to one on the ledger, without bytes and threads.

After every command both devices must show the same: what could run, what has run, what every block of every worker
holds. A stream that does not wait as it should is seen at its gate too early, or as bytes that differ.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tests.gpu.devices import Open

from kvoffload.config import Config
from kvoffload.devices.device import Device, FailsOnDemand
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.operations import Content, Stream, Tier, Unreadable
from kvoffload.request import Phase
from kvoffload.runtime import Runtime

PROMPTS: Final = ((1, 2), (3, 5), (1, 2), (4,), (3, 5), (1, 6))
"""Keys of prompts; equal beginnings are equal keys."""

DECODED: Final = ((), (6,), (7, 8))
MOST_ALIVE: Final = 3
Command = tuple[str, Callable[[Runtime], object]]
"""In words, and what it does."""

RARITY: Final = 12
"""One command in so many interrupts what is served."""

SIZES: Final = ((3, 6), (4, 8), (5, 2))
"""Device blocks and host blocks."""


def observed(device: Device, config: Config) -> tuple[object, ...]:
    """All that can be seen of a gated device."""
    sizes = {
        Tier.DEVICE: config.device_blocks,
        Tier.HOST: config.host_blocks,
        Tier.SECOND: config.second_blocks,
    }
    contents: list[Content | Unreadable] = [
        device.content(tier, worker, block)
        for tier, blocks in sizes.items()
        for worker in range(config.workers)
        for block in range(blocks)
    ]
    ran = [(device.computed(worker), device.copied(worker)) for worker in range(config.workers)]
    return device.runnable(), ran, contents, list(device.misreads)


class Walk:
    """One engine on the device and its twin on the ledger, and the commands that both can be given now."""

    def __init__(self, config: Config, device: Device) -> None:
        self.config = config
        self.device = device
        sizes = config.workers, config.device_blocks, config.host_blocks
        self.ledger = Ledger.create(*sizes, second_blocks=config.second_blocks)
        self.runtimes = [Runtime(Engine.create(config), either) for either in (device, self.ledger)]
        self.submitted = 0

    def step(self, choice: int) -> str:
        """Give both the command that a number stands for, and compare what is seen. Says which command it was."""
        rarely, which = choice % RARITY == 0, choice // RARITY
        commands = (rarely and list(self._interruptions())) or list(self._progress())
        name, command = commands[which % len(commands)]
        for runtime in self.runtimes:
            command(runtime)
        assert observed(self.device, self.config) == observed(self.ledger, self.config), f"after {name}"
        return name

    def drain(self) -> None:
        """Let everything run and be served to its end: no request is stuck, and every read was right."""
        for _ in range(1000):
            if not self.runtimes[1].engine.has_work():
                break
            for runtime in self.runtimes:
                runtime.step()
            while lanes := self.ledger.runnable():
                for runtime in self.runtimes:
                    runtime.device.run(*lanes[0])
            assert observed(self.device, self.config) == observed(self.ledger, self.config), "while it drained"
        assert not any(runtime.engine.has_work() for runtime in self.runtimes)
        assert self.device.misreads == []
        assert all(runtime.engine.reset("invalidate", "preempt") is True for runtime in self.runtimes)

    def _alive(self) -> list[int]:
        engine = self.runtimes[1].engine
        return [number for number, request in engine.requests.items() if request.phase is not Phase.DONE]

    def _progress(self) -> Iterator[Command]:
        """What serves requests, as far as the twin can do it, and so the engine: the two have done the same."""
        twin = self.runtimes[1]
        for worker, stream in self.ledger.runnable():
            yield f"run w{worker} {stream}", lambda r, w=worker, s=stream: r.device.run(w, s)
        for worker in range(self.config.workers):
            jobs = self.ledger.copied(worker)
            if jobs:
                yield f"report w{worker} {jobs}", lambda r, w=worker, j=jobs: r.deliver(w, j)
                yield f"report w{worker} {jobs[-1:]}", lambda r, w=worker, j=jobs: r.deliver(w, j[-1:])
        if twin.can_handle_output():
            yield "handle output", lambda r: r.handle_output()
        yield "step", lambda r: r.step()
        if len(self._alive()) < MOST_ALIVE:
            number = self.submitted
            prompt = PROMPTS[number % len(PROMPTS)]
            total = prompt + tuple(key + 10 * number for key in DECODED[number % len(DECODED)])
            total = total[: max(len(prompt), self.config.device_blocks - 1)]
            yield f"submit {number}", lambda r: self._submit(r, number, prompt, total)

    def _interruptions(self) -> Iterator[Command]:
        engine, alive = self.runtimes[1].engine, self._alive()
        for worker, stream in self.ledger.runnable():
            if stream is not Stream.COMPUTE:
                yield f"fail w{worker} {stream}", lambda r, w=worker, s=stream: _fail(r.device, w, s)
        for request in alive:
            if engine.requests[request].phase in (Phase.LOADING, Phase.RUNNING):
                yield f"preempt {request}", lambda r, q=request: r.engine.preempt(q)
        if alive:
            yield f"abort {alive[0]}", lambda r: self._abort(r, alive[0])
        yield "reset invalidate", lambda r: r.engine.reset("invalidate", "preempt")
        if self.config.second_blocks:
            yield "reset evict of the device", lambda r: r.engine.reset("evict", "preempt", "device")
        yield "reset evict, survivors kept", lambda r: r.engine.reset("evict", "keep")

    def _submit(self, runtime: Runtime, number: int, prompt: Sequence[int], total: Sequence[int]) -> None:
        self.submitted = number + 1
        runtime.engine.submit(number, prompt, total)

    def _abort(self, runtime: Runtime, request: int) -> None:
        found = runtime.engine.requests[request]
        if found.phase is not Phase.DRAINING or found.returns:
            runtime.engine.abort(request)


def _fail(device: Device, worker: int, stream: Stream) -> None:
    """The first block of the oldest copy is not copied."""
    assert isinstance(device, FailsOnDemand)
    device.run_failing(worker, stream, (0,))


def walk(config: Config, choices: Sequence[int], open_device: Open) -> list[str]:
    """Walk and drain; the commands that were given."""
    sizes = config.workers, config.device_blocks, config.host_blocks
    device = open_device(*sizes, gated=True, second_blocks=config.second_blocks)
    try:
        walked = Walk(config, device)
        names = [walked.step(choice) for choice in choices]
        walked.drain()
        return names
    finally:
        device.close()
