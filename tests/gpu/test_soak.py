"""Soak on free CUDA streams: 1 to 4 workers, with and without pauses, blocks of up to 2 MiB; all bytes are checked."""

import pytest
from tests.gpu.devices import cuda
from tests.gpu.soaking import failing, soak

from kvoffload.config import Config


@pytest.mark.parametrize("delays", [None, 1])
@pytest.mark.parametrize("store_mode", ["eager", "lazy"])
@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@pytest.mark.parametrize(("workers", "output_from", "depth"), [(1, "all", 2), (2, "first", 2), (4, "all", 1)])
def test_soak(discipline: str, store_mode: str, workers: int, output_from: str, depth: int, delays: int | None) -> None:
    config = Config(discipline, 6, 8, workers, store_mode, output_from, depth)  # type: ignore[arg-type]
    done = soak(config, 200, workers, cuda, delays=delays, layers=4, block_bytes=4096)
    assert done.finished >= 200
    assert done.jobs > 50
    assert done.checked > 100


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_soak_of_large_blocks(discipline: str) -> None:
    """64 KiB in each of 32 layers: a job is some hundred pieces, and takes long enough to be overtaken."""
    config = Config(discipline, 6, 8, 2)  # type: ignore[arg-type]
    assert soak(config, 60, 7, cuda, layers=32, block_bytes=1 << 16).finished >= 60


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_soak_with_copies_that_fail(discipline: str) -> None:
    config = Config(discipline, 6, 8, 2)  # type: ignore[arg-type]
    assert soak(config, 200, 3, cuda, delays=2, layers=4, block_bytes=4096, faults=failing(1)).finished >= 200


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_soak_with_a_second_tier(discipline: str) -> None:
    config = Config(discipline, 6, 3, 2, second_blocks=6)  # type: ignore[arg-type]
    assert soak(config, 200, 5, cuda, delays=2, layers=4, block_bytes=4096).finished >= 200
