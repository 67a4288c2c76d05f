"""CUDA without a GPU: streams are queues that run when a test lets them, memory is memory, and everything is recorded.

It is stricter than CUDA: to copy from or to memory that is neither a GPU's nor pinned, to have one destination twice in
one call, or to give memory back while a stream has something to do, is an AssertionError. The copies of one call run a
layer of a block at a time, in random order, so that whoever reads too early sees half of them.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kvoffload.devices.cuda_driver import CudaStream, Event
from kvoffload.kv_tensors import Tensor, torch


@dataclass(eq=False)
class SimulatedEvent:
    """done  whether the stream has come to it"""

    driver: "SimulatedDriver"
    stream: "SimulatedStream"
    done: bool = False

    def happened(self) -> bool:
        self.driver.polled()
        return self.done


class Call(NamedTuple):
    """One call of a copy: on which stream, how many blocks, and what kind of memory it goes from and to."""

    stream: str
    blocks: int
    source: str
    destination: str


@dataclass(eq=False)
class SimulatedStream:
    """queue  what was put in, oldest first: (whether it may run, what it does)"""

    driver: "SimulatedDriver"
    gpu: int
    priority: int
    name: str
    queue: deque[tuple[Callable[[], bool], Callable[[], None]]] = field(default_factory=deque)
    waits: list["SimulatedStream"] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)

    def copy(self, source: Tensor, destination: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
        driver = self.driver
        driver.calls.append(Call(self.name, len(pairs), driver.kind(source), driver.kind(destination)))
        assert len({block for _, block in pairs}) == len(pairs), "a call has no order"
        parts = [(layer, origin, block) for layer in range(source.shape[0]) for origin, block in pairs]
        driver.chance.shuffle(parts)
        for part in parts:
            self._put(lambda part=part: _copy_part(source, destination, part))

    def record(self) -> Event:
        event = SimulatedEvent(self.driver, self)
        self._put(lambda: setattr(event, "done", True))
        return event

    def wait(self, event: Event) -> None:
        assert isinstance(event, SimulatedEvent)
        self.waits.append(event.stream)
        self._put(_nothing, lambda: event.done)

    def wait_for_value(self, word: Tensor, value: int) -> None:
        assert self.driver.gating
        assert self.driver.kind(word) == "pinned"
        self._put(_nothing, lambda: int(word[0]) >= value)

    def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        self._put(_nothing)

    def step(self) -> bool:
        """Run the oldest part, if it may. Did it?"""
        if not self.queue or not self.queue[0][0]():
            return False
        self.queue.popleft()[1]()
        return True

    def _put(self, what: Callable[[], None], when: Callable[[], bool] = lambda: True) -> None:
        self.queue.append((when, what))


def _nothing() -> None:
    pass


def _copy_part(source: Tensor, destination: Tensor, part: tuple[int, int, int]) -> None:
    layer, origin, block = part
    destination[layer, block].copy_(source[layer, origin])


class SimulatedDriver:
    """A `CudaDriver` of so many GPUs.

    haste  how many parts run, of streams drawn at random, whenever somebody asks whether an event has happened: 0, and
           streams run only by `step`, `settle` and `idle`
    """

    def __init__(self, gpus: int = 1, *, haste: int = 0, seed: int = 0, gating: bool = True) -> None:
        self.gpus = tuple(range(gpus))
        self.connections = 32
        self.copying = "simulated"
        self.gating = "simulated" if gating else ""
        self.no_gating = "" if gating else "the simulation was told so"
        self.haste = haste
        self.chance = random.Random(seed)
        self.streams: list[SimulatedStream] = []
        self.calls: list[Call] = []
        self.registered: list[Tensor] = []
        self.released = 0
        self.memories: dict[int, Tensor] = {}

    # What the device asks for.

    def name(self, gpu: int) -> str:
        return "Simulated GPU"

    def pinned(self, words: int) -> Tensor:
        self.registered.append(torch.zeros(words, dtype=torch.int64))
        return self.registered[-1]

    def release(self, pinned: Tensor) -> None:
        assert pinned is self.registered[-1]
        assert not any(stream.queue for stream in self.streams), "a stream still uses it"
        self.released += 1

    def memory(self, gpu: int, layers: int, blocks: int, words: int) -> Tensor:
        memory = torch.zeros((layers, blocks, words), dtype=torch.int64)
        self.memories[memory.untyped_storage().data_ptr()] = memory
        return memory

    def blank(self, memory: Tensor) -> None:
        assert not any(stream.queue for stream in self.streams), "it would wait for every stream"
        memory.zero_()

    def stream(self, gpu: int, priority: int) -> CudaStream:
        assert gpu in self.gpus
        stream = SimulatedStream(self, gpu, priority, f"stream {len(self.streams)}")
        self.streams.append(stream)
        return stream

    def idle(self) -> None:
        self._run(1 + self.haste)

    def settle(self) -> None:
        while sum(stream.step() for stream in self.streams):
            pass

    # What the tests ask for.

    def polled(self) -> None:
        self._run(self.haste)

    def kind(self, memory: Tensor) -> str:
        """`pinned` or `gpu`."""
        place = memory.untyped_storage().data_ptr()
        if place in self.memories:
            return "gpu"
        assert any(place == pinned.untyped_storage().data_ptr() for pinned in self.registered), "pageable memory"
        return "pinned"

    def _run(self, parts: int) -> None:
        for _ in range(parts):
            self.chance.choice(self.streams).step()
