"""The calls of the CUDA driver library, made on a library without a GPU: signatures, addresses, contexts, and what is
said where a call is missing. What torch itself does is not tried here."""

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvoffload.devices import cuda_torch, libcuda
from kvoffload.devices.cuda_torch import addresses, copy_at_once, copy_one_by_one
from kvoffload.devices.libcuda import CudaError, LibCuda
from kvoffload.kv_tensors import KVTensors, Pattern, torch
from kvoffload.operations import Content, Unreadable

SOURCE = Path(__file__).with_name("fake_libcuda.c")
HEADERS = Path("/usr/local/cuda/include")
STREAM = 4096
CONTEXT = STREAM + 7

Build = Callable[[int], str]


class Record(ctypes.Structure):
    """What the library remembers; see fake_libcuda.c."""

    _fields_ = (
        *[
            (name, ctypes.c_int64)
            for name in ("batches", "copies", "order", "bytes_of_attributes", "waits", "context", "stream", "value")
        ],
        ("flags", ctypes.c_int64),
        ("pushed", ctypes.c_int64),
        ("address", ctypes.c_uint64),
    )


@pytest.fixture(autouse=True)
def looked_up_afresh() -> Iterator[None]:
    cuda_torch.capabilities.cache_clear()
    yield
    cuda_torch.capabilities.cache_clear()


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def built(version: int) -> str:
        library = tmp_path_factory.mktemp("libcuda") / "libcuda.so.1"
        command = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", f"-DFAKE_VERSION={version}"]
        if (HEADERS / "cudaTypedefs.h").is_file():
            command += ["-DCHECK_HEADERS", f"-I{HEADERS}"]
        subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True)
        return str(library)

    return built


def record_of(path: str) -> Record:
    return Record.in_dll(ctypes.CDLL(path), "record")


def tiers(layers: int = 3) -> tuple[KVTensors, KVTensors]:
    """One with blocks 0 to 4 written, another that is empty and is a part of larger memory."""
    pattern = Pattern(0, layers, 64)
    full = KVTensors(pattern, 5)
    for block in range(5):
        full.fill(block, Content(block, 1))
    around = torch.zeros(8 + layers * 4 * 8 + 8, dtype=torch.int64)
    return full, KVTensors(pattern, 4, around[8:-8].view(layers, 4, 8))


PAIRS = ((4, 0), (1, 3), (2, 1))


def test_a_batch_is_one_call_with_every_layer_of_every_block(build: Build) -> None:
    path = build(13000)
    full, empty = tiers()
    copy_at_once(LibCuda(path), CONTEXT, STREAM, full.data, empty.data, PAIRS)
    held = [empty.decode(block) for block in range(4)]
    assert held == [Content(4, 1), Content(2, 1), Unreadable.UNWRITTEN, Content(1, 1)]
    record = record_of(path)
    assert (record.batches, record.copies, record.order, record.bytes_of_attributes) == (1, 9, 1, 24)
    assert (record.stream, record.context, record.pushed) == (STREAM, CONTEXT, 0)


def test_copies_one_by_one_do_the_same() -> None:
    full, empty = tiers()
    copy_one_by_one(full.data, empty.data, PAIRS)
    held = [empty.decode(block) for block in range(4)]
    assert held == [Content(4, 1), Content(2, 1), Unreadable.UNWRITTEN, Content(1, 1)]


def test_addresses_are_those_of_torch_layer_after_layer() -> None:
    full, _ = tiers()
    expected = [full.data[layer, block].data_ptr() for layer in range(3) for block in (3, 0)]
    assert addresses(full.data, torch.tensor([3, 0])).tolist() == expected


def test_a_wait_is_for_the_word_where_the_gpu_sees_it(build: Build) -> None:
    path = build(12080)
    LibCuda(path).wait_value(CONTEXT, STREAM, 1 << 20, (1 << 32) + 3)
    record = record_of(path)
    assert (record.waits, record.address, record.value, record.flags) == (1, (1 << 20) + 4096, 3, 0)
    assert (record.stream, record.context, record.pushed) == (STREAM, CONTEXT, 0)


def test_the_context_is_that_of_the_stream(build: Build) -> None:
    assert LibCuda(build(12080)).context(STREAM) == CONTEXT


def test_a_failure_is_named_and_leaves_no_context_behind(build: Build) -> None:
    path = build(12080)
    library = LibCuda(path)
    words = torch.zeros(3, dtype=torch.int64)
    blocks = torch.tensor([words.data_ptr()] * 3)
    sizes = torch.tensor([8, 8, 0])
    with pytest.raises(
        CudaError, match=r"cuMemcpyBatchAsync of 3 copies \(number 2\) failed: CUDA_ERROR_INVALID_VALUE"
    ):
        library.copy_batch(CONTEXT, STREAM, blocks.data_ptr(), blocks.data_ptr(), sizes.data_ptr(), 3)
    assert record_of(path).pushed == 0


@pytest.mark.parametrize(
    ("version", "copying", "gating"),
    [
        (13000, "one cuMemcpyBatchAsync per job", "cuStreamWaitValue32 on a pinned word"),
        (12080, "one cuMemcpyBatchAsync per job", "cuStreamWaitValue32 on a pinned word"),
        (
            12060,
            "one cudaMemcpyAsync per block and layer, since the driver has no cuMemcpyBatchAsync (CUDA 12.8)",
            "cuStreamWaitValue32 on a pinned word",
        ),
    ],
)
def test_what_the_driver_can_do_is_chosen_once_and_named(
    build: Build, monkeypatch: pytest.MonkeyPatch, version: int, copying: str, gating: str
) -> None:
    path = build(version)
    monkeypatch.setattr(cuda_torch, "load", lambda: LibCuda(path))
    _, copies, gates, no_gates = cuda_torch.capabilities()
    assert (copies, gates, no_gates) == (copying, gating, "")


def test_without_the_library_there_are_copies_one_by_one_and_no_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> LibCuda:
        raise OSError("libcuda.so.1: not found")

    monkeypatch.setattr(cuda_torch, "load", absent)
    library, copies, gates, no_gates = cuda_torch.capabilities()
    assert library is None
    assert copies == (
        "one cudaMemcpyAsync per block and layer, "
        "since the CUDA driver library cannot be used (libcuda.so.1: not found)"
    )
    assert (gates, no_gates) == ("", "the CUDA driver library cannot be used (libcuda.so.1: not found)")


def test_a_library_that_is_too_old_is_refused(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "old.c"
    source.write_text("int cuInit(unsigned int flags) { return (int)flags; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(tmp_path / "old.so"), str(source)], check=True)
    with pytest.raises(AttributeError, match="cuGetProcAddress_v2"):
        LibCuda(str(tmp_path / "old.so"))


def test_torch_has_what_the_driver_uses() -> None:
    """On a torch without CUDA nothing can be called, but everything is there to be called."""
    for name in (
        "Stream",
        "Event",
        "stream",
        "cudart",
        "get_device_name",
        "current_stream",
        "is_initialized",
        "_sleep",
    ):
        assert callable(getattr(torch.cuda, name)), name
    assert callable(torch.cuda.Stream.record_event)
    assert callable(torch.cuda.Stream.wait_event)
    assert callable(torch.cuda.Event.query)
    assert libcuda.STREAM_ORDER == 1


# The driver, on a torch.cuda that only counts.


class CountingCuda:
    """As much of `torch.cuda` as the driver needs to hand out streams and register memory."""

    POOL = 4

    def __init__(self) -> None:
        self.drawn = 0
        self.registered: list[tuple[int, int, int]] = []
        self.unregistered: list[int] = []

    def cudart(self) -> "CountingCuda":
        return self

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:  # noqa: N802
        self.registered.append((address, size, flags))
        return 0

    def cudaHostUnregister(self, address: int) -> int:  # noqa: N802
        self.unregistered.append(address)
        return 0 if address in {place for place, _, _ in self.registered} else 1

    def Stream(self, gpu: int, priority: int) -> SimpleNamespace:  # noqa: N802
        """One of a few, in turn, as torch does it."""
        self.drawn += 1
        return SimpleNamespace(cuda_stream=1000 * (gpu + 1) - 100 * priority + self.drawn % self.POOL)

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 2


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> CountingCuda:
    cuda = CountingCuda()
    monkeypatch.setattr(cuda_torch, "_cuda", cuda)
    monkeypatch.setattr(cuda_torch, "missing", lambda: "")
    monkeypatch.setattr(cuda_torch, "load", _absent)
    monkeypatch.setattr(cuda_torch, "POOL", CountingCuda.POOL)
    return cuda


def _absent() -> LibCuda:
    raise OSError("no library")


def test_pinned_memory_is_zero_in_pages_of_its_own_and_registered_in_one_call(counting: CountingCuda) -> None:
    driver = cuda_torch.TorchDriver()
    memory = driver.pinned(1000)
    assert counting.registered == [(memory.data_ptr(), 8000, 3)]
    assert memory.data_ptr() % mmap.PAGESIZE == 0
    assert not memory.any()
    memory.fill_(1)
    driver.release(memory)
    assert counting.unregistered == [memory.data_ptr()]
    with pytest.raises(CudaError, match="cudaHostUnregister failed: 1"):
        driver.release(torch.zeros(1))


def test_no_stream_is_given_to_two_and_one_that_was_given_up_is_given_again(counting: CountingCuda) -> None:
    driver = cuda_torch.TorchDriver()
    streams = [driver.stream(gpu, priority) for gpu in (0, 1) for priority in (0, -1) for _ in range(4)]
    assert len({stream._handle for stream in streams}) == 16
    with pytest.raises(RuntimeError, match="all 4 streams of priority 0 that torch has for GPU 1 are in use"):
        driver.stream(1, 0)
    handle = streams.pop(10)._handle
    assert driver.stream(1, 0)._handle == handle


def test_as_many_connections_as_there_can_be_are_asked_for_before_cuda_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for given, asked in ((None, "32"), ("1", "1")):
        monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
        if given is not None:
            monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", given)
        cuda_torch.missing()
        assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == asked


def test_why_there_is_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    monkeypatch.setattr(torch, "__version__", "2.10.1+cu130")
    assert cuda_torch.missing() == "torch 2.10.1+cu130 is older than 2.11"
    monkeypatch.setattr(torch, "__version__", "2.11.0+cpu")
    monkeypatch.setattr(torch.version, "cuda", None)
    assert cuda_torch.missing() == "torch 2.11.0+cpu is not built for CUDA"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert cuda_torch.missing() == "no CUDA device"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert cuda_torch.missing() == ""


@pytest.mark.skipif(cuda_torch.missing() == "", reason="here it can run")
def test_make_gpu_says_in_one_sentence_why_it_cannot_run() -> None:
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "tests/gpu/ready.py"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": "impl"},
        capture_output=True,
        text=True,
        check=False,
    )
    reason = cuda_torch.missing()
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"make gpu cannot run: {reason} (docs/how-to/run-on-a-gpu.md)\n"
