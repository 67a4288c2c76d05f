"""What the device on CUDA asks of CUDA: streams, events, memory, and a word in memory that a stream waits for.

`cuda_torch` has it from torch and the driver library; the tests have it simulated. Nothing here touches a GPU.

Memory is always a tensor of int64 words, of shape (layers, blocks, words): on a GPU, or cut from pinned host memory.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from kvoffload.kv_tensors import Tensor

HIGH: Final = -1
"""The priority of compute streams. Lower numbers come first, as in CUDA."""

LOW: Final = 0
"""The priority of copy streams: CUDA's default, and its lowest."""


class Event(Protocol):
    """A point in a stream."""

    def happened(self) -> bool:
        """Whether the stream has come to it. Raises what CUDA reports of anything that failed before."""
        ...


class CudaStream(Protocol):
    """A queue on one GPU: what is put into it runs in order. Every method returns at once."""

    def copy(self, source: Tensor, destination: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy blocks, all layers of each, as (source block, destination block): one call of the driver if it can be.

        In no particular order: no destination may be there twice, and source and destination are different memory.
        """
        ...

    def record(self) -> Event:
        """A new event, here."""
        ...

    def wait(self, event: Event) -> None:
        """Let what is put into this stream from now on wait for an event, which was recorded before."""
        ...

    def wait_for_value(self, word: Tensor, value: int) -> None:
        """Let it wait until the first word of this pinned memory is at least this value, which the host will write."""
        ...

    def pause(self, seconds: float) -> None:
        """Keep the stream busy for about that long."""
        ...


class CudaDriver(Protocol):
    """One process's CUDA.

    gpus          device numbers that can be used
    connections   streams of one GPU that certainly do not hold each other back (count)
    copying       how copies are made, in words
    gating        how a stream waits for the host, in words; empty: it cannot
    no_gating     why it cannot, in words
    """

    gpus: tuple[int, ...]
    connections: int
    copying: str
    gating: str
    no_gating: str

    def name(self, gpu: int) -> str:
        """What the GPU calls itself."""
        ...

    def pinned(self, words: int) -> Tensor:
        """Page-locked host memory for all GPUs, zero, of shape (words,): registered with this one call."""
        ...

    def release(self, pinned: Tensor) -> None:
        """Take the registration back. No stream may use the memory any more."""
        ...

    def memory(self, gpu: int, layers: int, blocks: int, words: int) -> Tensor:
        """Memory of a GPU, zero when this returns."""
        ...

    def blank(self, memory: Tensor) -> None:
        """Zero it. No stream may use it; done when this returns."""
        ...

    def stream(self, gpu: int, priority: int) -> CudaStream:
        """A stream that no other caller has."""
        ...

    def idle(self) -> None:
        """Let a little time pass (microseconds) while the caller polls."""
        ...

    def settle(self) -> None:
        """Let so much time pass that streams without anything to wait for have gone on. Nobody can be sure of it."""
        ...
