"""Every case of `tests/seeds`, on gated CUDA streams."""

import pytest
from tests.gpu.cases import CASES, play
from tests.gpu.devices import cuda

from kvoffload.config import Config
from kvoffload.engine import Engine
from kvoffload.errors import NotBound
from kvoffload.operations import Stream
from kvoffload.runtime import Runtime


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    play(name, cuda)


@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_reset_before_the_device_pool_is_bound(discipline: str) -> None:
    engine = Engine(Config(discipline, device_blocks=2, host_blocks=2))  # type: ignore[arg-type]
    device = cuda(1, 2, 2, gated=True)
    try:
        runtime = Runtime(engine, device)
        engine.submit(0, (1, 2), (1, 2))
        with pytest.raises(NotBound):
            engine.reset("invalidate", "preempt")
        engine.bind()
        assert engine.reset("invalidate", "preempt") is True
        engine.admit(0)
        runtime.launch()
        device.run(0, Stream.COMPUTE)
        device.run(0, Stream.STORE)
        runtime.deliver(0, [0])
        runtime.handle_output()
        engine.finish(0)
        assert sorted(engine.host_pool.cache.blocks) == [1, 2]
        assert device.misreads == []
    finally:
        device.close()
