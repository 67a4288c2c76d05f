"""Gated walks on CUDA streams: drawn by Hypothesis, and long ones by seed."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gpu.devices import cuda
from tests.gpu.walks import SIZES, walk

from kvoffload.config import Config

configs = st.builds(
    lambda discipline, sizes, workers, store_mode, output_from, depth: Config(
        discipline, sizes[0], sizes[1], workers, store_mode, output_from, depth
    ),
    st.sampled_from(["pinning", "fencing"]),
    st.sampled_from(SIZES),
    st.integers(1, 3),
    st.sampled_from(["eager", "lazy"]),
    st.sampled_from(["all", "first"]),
    st.sampled_from([1, 2]),
)


@settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(configs, st.lists(st.integers(0, 1 << 16), max_size=60))
def test_walks_that_are_drawn(config: Config, choices: list[int]) -> None:
    walk(config, choices, cuda)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@pytest.mark.parametrize("seed", range(3))
def test_long_walks(seed: int, discipline: str, sizes: tuple[int, int]) -> None:
    chance = random.Random(seed)
    config = Config(discipline, *sizes, workers=2)  # type: ignore[arg-type]
    assert len(walk(config, [chance.randrange(1 << 16) for _ in range(400)], cuda)) == 400


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
@pytest.mark.parametrize("seed", range(3))
def test_long_walks_with_a_second_tier(seed: int, discipline: str) -> None:
    chance = random.Random(seed)
    config = Config(discipline, 3, 2, workers=2, second_blocks=4)  # type: ignore[arg-type]
    assert len(walk(config, [chance.randrange(1 << 16) for _ in range(400)], cuda)) == 400
