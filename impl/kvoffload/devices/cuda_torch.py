"""CUDA as torch has it: the only module that touches `torch.cuda`.

How copies are made, and whether streams can be gated, is decided once, when the driver is opened, and said in words.
torch has no call for many copies at once between a GPU and host memory (`_foreach_copy_` makes one by one), and none
that lets a stream wait for the host: `libcuda` has both, if the driver that is installed does.
"""

import math
import mmap
import os
import time
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from kvoffload.devices.cuda_driver import Event
from kvoffload.devices.libcuda import CudaError, LibCuda, load
from kvoffload.kv_tensors import WORD_BYTES, Tensor, torch

_cuda: Any = torch.cuda
"""Only some of it is annotated."""

LEAST_TORCH: Final = (2, 11)
CONNECTIONS: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
MOST_CONNECTIONS: Final = 32
USUAL_CONNECTIONS: Final = 8
"""What CUDA has where the variable is not set."""

POOL: Final = 32
"""How many streams of one priority torch has for one GPU; it hands them out in turn, and then again."""

REGISTER_FLAGS: Final = 3
"""cudaHostRegisterPortable and cudaHostRegisterMapped: pinned for all GPUs, and visible to their streams."""

CYCLES_PER_S: Final = 1.7e9
"""Of a GPU's clock, about: what pauses are measured in."""

IDLE_S: Final = 0.000_01
SETTLE_S: Final = 0.000_1


def missing() -> str:
    """Why there is no CUDA here, in words; empty: there is. To be asked before anything else uses CUDA, since it asks
    for as many connections as there can be: the driver looks at that only once."""
    os.environ.setdefault(CONNECTIONS, str(MOST_CONNECTIONS))
    if _version(torch.__version__) < LEAST_TORCH:
        return f"torch {torch.__version__} is older than {'.'.join(map(str, LEAST_TORCH))}"
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is not built for CUDA"
    if not _cuda.is_available():
        return "no CUDA device"
    return ""


def device_names() -> list[str]:
    """What every CUDA device calls itself. Not without `missing` being empty."""
    return [str(_cuda.get_device_name(gpu)) for gpu in range(_cuda.device_count())]


class TorchEvent:
    """A torch event, recorded."""

    def __init__(self, event: Any) -> None:
        self.event = event

    def happened(self) -> bool:
        return bool(self.event.query())


class TorchStream:
    """A torch stream, and the driver library for what torch does not do."""

    def __init__(self, stream: Any, library: LibCuda | None) -> None:
        self._stream = stream
        self._library = library
        self._handle: int = stream.cuda_stream
        self._context = 0 if library is None else library.context(self._handle)

    def copy(self, source: Tensor, destination: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
        if self._library is not None and not self._library.no_batches:
            copy_at_once(self._library, self._context, self._handle, source, destination, pairs)
        else:
            with _cuda.stream(self._stream):
                copy_one_by_one(source, destination, pairs)

    def record(self) -> Event:
        return TorchEvent(self._stream.record_event())

    def wait(self, event: Event) -> None:
        assert isinstance(event, TorchEvent)
        self._stream.wait_event(event.event)

    def wait_for_value(self, word: Tensor, value: int) -> None:
        assert self._library is not None
        self._library.wait_value(self._context, self._handle, word.data_ptr(), value)

    def pause(self, seconds: float) -> None:
        with _cuda.stream(self._stream):
            _cuda._sleep(math.ceil(seconds * CYCLES_PER_S))


@cache
def driver() -> "TorchDriver":
    """CUDA of this process. Raises RuntimeError where `missing` says that there is none."""
    return TorchDriver()


class TorchDriver:
    """A `CudaDriver`. One for a process, so that no stream is given away twice: see `driver`."""

    def __init__(self) -> None:
        why = missing()
        if why:
            raise RuntimeError(why)
        if not _cuda.is_initialized():
            _cuda.init()
        self.gpus = tuple(range(_cuda.device_count()))
        self.connections = int(os.environ.get(CONNECTIONS, USUAL_CONNECTIONS))
        self._library, self.copying, self.gating, self.no_gating = capabilities()
        self._streams: weakref.WeakValueDictionary[int, TorchStream] = weakref.WeakValueDictionary()

    def name(self, gpu: int) -> str:
        return str(_cuda.get_device_name(gpu))

    def pinned(self, words: int) -> Tensor:
        # Pages of their own: two registrations of one page are an error. torch's own pinned memory comes in powers of
        # two, which for a host tier is up to twice as much.
        memory = torch.frombuffer(mmap.mmap(-1, words * WORD_BYTES), dtype=torch.int64)
        result = _cuda.cudart().cudaHostRegister(memory.data_ptr(), words * WORD_BYTES, REGISTER_FLAGS)
        _check("cudaHostRegister", result)
        return memory

    def release(self, pinned: Tensor) -> None:
        _check("cudaHostUnregister", _cuda.cudart().cudaHostUnregister(pinned.data_ptr()))

    def memory(self, gpu: int, layers: int, blocks: int, words: int) -> Tensor:
        memory = torch.zeros((layers, blocks, words), dtype=torch.int64, device=f"cuda:{gpu}")
        _cuda.current_stream(gpu).synchronize()  # not the whole GPU: streams of another device may be at their gates
        return memory

    def blank(self, memory: Tensor) -> None:
        memory.zero_()
        _cuda.current_stream(memory.device).synchronize()

    def stream(self, gpu: int, priority: int) -> TorchStream:
        for _ in range(POOL):
            drawn = _cuda.Stream(gpu, priority=priority)
            if drawn.cuda_stream not in self._streams:
                stream = TorchStream(drawn, self._library)
                self._streams[drawn.cuda_stream] = stream
                return stream
        raise RuntimeError(f"all {POOL} streams of priority {priority} that torch has for GPU {gpu} are in use")

    def idle(self) -> None:
        time.sleep(IDLE_S)

    def settle(self) -> None:
        time.sleep(SETTLE_S)


class Capabilities(NamedTuple):
    """What the driver that is installed can do; see `CudaDriver`. library  None: it cannot be used"""

    library: LibCuda | None
    copying: str
    gating: str
    no_gating: str


@cache
def capabilities() -> Capabilities:
    """Looked up once. Needs no GPU."""
    try:
        library = load()
    except (OSError, AttributeError) as error:
        why = f"the CUDA driver library cannot be used ({error})"
        return Capabilities(None, f"one cudaMemcpyAsync per block and layer, since {why}", "", why)
    if library.no_batches:
        copying = f"one cudaMemcpyAsync per block and layer, since {library.no_batches}"
    else:
        copying = "one cuMemcpyBatchAsync per job"
    gating = "" if library.no_waits else "cuStreamWaitValue32 on a pinned word"
    return Capabilities(library, copying, gating, library.no_waits)


def copy_at_once(
    library: LibCuda,
    context: int,
    stream: int,
    source: Tensor,
    destination: Tensor,
    pairs: Sequence[tuple[int, int]],
) -> None:
    """All layers of all blocks in one call of the driver."""
    sources, destinations = torch.tensor(pairs, dtype=torch.int64).unbind(1)
    from_here, to_there = addresses(source, sources), addresses(destination, destinations)
    sizes = torch.full_like(from_here, source.shape[2] * WORD_BYTES)
    library.copy_batch(context, stream, from_here.data_ptr(), to_there.data_ptr(), sizes.data_ptr(), from_here.numel())


def addresses(memory: Tensor, blocks: Tensor) -> Tensor:
    """Where these blocks begin, in each layer: layer after layer."""
    layers, _, words = memory.shape
    block_bytes, layer_bytes = words * WORD_BYTES, memory.stride(0) * WORD_BYTES
    starts = memory.data_ptr() + torch.arange(layers, dtype=torch.int64) * layer_bytes
    return (starts.unsqueeze(1) + blocks * block_bytes).flatten()


def copy_one_by_one(source: Tensor, destination: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
    """A block of a layer is in one piece, so each of these is one asynchronous copy on the current stream."""
    for read, written in zip(source.unbind(0), destination.unbind(0), strict=True):
        for origin, block in pairs:
            written[block].copy_(read[origin], non_blocking=True)


def _check(call: str, result: Any) -> None:
    """Raises CudaError unless a call of the runtime answered 0."""
    if int(result):
        raise CudaError(f"{call} failed: {result}")


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)
