"""The suite of `tests/gpu`, on the host device and on simulated CUDA, so that it is known to work before a GPU comes.

What only a GPU can answer (`tests/gpu/test_device.py`) is not here.
"""

import ast
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.gpu.cases import CASES, play
from tests.gpu.devices import Open
from tests.gpu.soaking import failing, soak
from tests.gpu.throughput import KIB, table
from tests.gpu.walks import SIZES, walk
from tests.impl.simulated_cuda import SimulatedDriver, SimulatedStream

from kvoffload.config import Config
from kvoffload.devices.cuda import Cuda
from kvoffload.devices.host import Host

GPU = Path(__file__).parents[1] / "gpu"


def simulated(workers: int, device_blocks: int, host_blocks: int, **options: object) -> Cuda:
    driver = SimulatedDriver(gpus=1 + workers % 2, haste=5, seed=workers)
    return Cuda(driver, workers, device_blocks, host_blocks, **options)  # type: ignore[arg-type]


def host(workers: int, device_blocks: int, host_blocks: int, **options: object) -> Host:
    return Host(workers, device_blocks, host_blocks, **options)  # type: ignore[arg-type]


devices = pytest.mark.parametrize("open_device", [host, simulated])


@pytest.mark.parametrize("name", CASES)
@devices
def test_case(open_device: Open, name: str) -> None:
    play(name, open_device)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@devices
def test_walks_do_everything(open_device: Open, discipline: str, sizes: tuple[int, int]) -> None:
    chance = random.Random(1)
    config = Config(discipline, *sizes, workers=2)  # type: ignore[arg-type]
    names = walk(config, [chance.randrange(1 << 16) for _ in range(300)], open_device)
    did = Counter(name.split()[0] if "run" not in name else name.split()[2] for name in names)
    assert sum(did.values()) == 300
    assert min(did[word] for word in ("compute", "store", "report", "step", "submit", "reset", "fail")) > 0
    if sizes[1] > sizes[0]:
        assert did["load"] > 0


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@devices
def test_walks_with_a_second_tier(open_device: Open, discipline: str) -> None:
    chance = random.Random(2)
    config = Config(discipline, 3, 2, workers=2, second_blocks=4)  # type: ignore[arg-type]
    names = walk(config, [chance.randrange(1 << 16) for _ in range(400)], open_device)
    ran = Counter(name.split()[2] for name in names if name.startswith("run "))
    assert min(ran[stream] for stream in ("compute", "store", "load", "cascade", "promotion")) > 0


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@devices
def test_soak_with_a_second_tier(open_device: Open, discipline: str) -> None:
    config = Config(discipline, 6, 3, 2, second_blocks=6)  # type: ignore[arg-type]
    assert soak(config, 40, 5, open_device, delays=1, layers=3).finished >= 40


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@devices
def test_soak(open_device: Open, discipline: str) -> None:
    config = Config(discipline, 6, 8, 2)  # type: ignore[arg-type]
    done = soak(config, 40, 2, open_device, delays=1, layers=3)
    assert done.finished >= 40
    assert done.jobs > 20
    assert done.checked > 50


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@devices
def test_soak_with_copies_that_fail(open_device: Open, discipline: str) -> None:
    config = Config(discipline, 6, 8, 2)  # type: ignore[arg-type]
    assert soak(config, 40, 3, open_device, faults=failing(1)).finished >= 40


@devices
def test_rates(open_device: Open) -> None:
    lines = table(open_device, large=64 * KIB, blocks=(KIB, 4 * KIB), batches=(1, 16), enough=64 * KIB)
    assert len(lines) == 5
    assert lines[0].split()[:4] == ["one", "copy", "of", "64"]
    assert lines[-1].split()[:5] == ["16", "x", "4", "KiB", "a"]
    assert all(line.count("GB/s") == 2 for line in lines)


def forget_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedStream, "wait", lambda self, event: None)


def test_forgotten_waits_fail_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_waits(monkeypatch)
    for name in ("reset_pending_eager_stores-fencing", "reset_pending_loads-fencing"):
        with pytest.raises(AssertionError, match="may_run"):
            play(name, simulated)


def test_forgotten_waits_fail_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_waits(monkeypatch)
    with pytest.raises(AssertionError, match="after "):
        walk(Config("fencing", 4, 8), list(range(0, 60_000, 11)), simulated)


def test_forgotten_waits_fail_a_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_waits(monkeypatch)
    with pytest.raises(AssertionError):
        soak(Config("pinning", 6, 8, 2), 400, 2, simulated)


def test_the_suite_needs_kvoffload_pytest_and_hypothesis_alone() -> None:
    """And the standard library; torch is what kvoffload is made on."""
    ours, others = set(), set()
    for path in GPU.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                first = name.split(".")[0]
                (ours if first in ("kvoffload", "tests") else others).add(name)
    assert {name for name in ours if name.startswith("tests.")} <= {f"tests.gpu.{p.stem}" for p in GPU.glob("*.py")}
    standard = {
        "ast",
        "collections",
        "functools",
        "json",
        "pathlib",
        "random",
        "sys",
        "threading",
        "time",
        "typing",
        "importlib",
    }
    assert {name.split(".")[0] for name in others} <= {"pytest", "hypothesis", *standard}
