"""A reset before the device pool is bound: vLLM PR 39726 made it an assertion (`reset() called before GPU pool bound`),
since it is a caller's error and no empty success. kvoffload refuses it by NotBound, and nothing has changed."""

import pytest

from kvmodel import Contract, Machine, Scope
from kvmodel.actions import Reset
from kvoffload.config import Config, Discipline
from kvoffload.devices.device import Device
from kvoffload.devices.host import Host
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.errors import NotBound
from kvoffload.operations import Stream
from kvoffload.request import Phase
from kvoffload.runtime import Runtime

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])


@both
def test_the_machine_begins_with_its_pools_bound(discipline: Discipline) -> None:
    """There is no earlier state to reset in: its first reset is legal, and true."""
    machine = Machine(Contract(discipline), Scope(2, 1, 1, ("ab",)))
    assert machine.answer(machine.initial(), Reset("invalidate", "preempt")) is True


@both
@pytest.mark.parametrize("device", ["ledger", "host"])
def test_reset_before_the_device_pool_is_bound(discipline: Discipline, device: str) -> None:
    engine = Engine(Config(discipline, device_blocks=2, host_blocks=2))
    memory: Device = Ledger.create(1, 2, 2) if device == "ledger" else Host(1, 2, 2, gated=True)
    try:
        runtime = Runtime(engine, memory)
        engine.submit(0, (1, 2), (1, 2))
        for meaning in ("invalidate", "evict"):
            with pytest.raises(NotBound):
                engine.reset(meaning, "preempt")
        assert engine.statistics.resets == 0
        assert engine.scheduler.generation == 0
        assert engine.requests[0].phase is Phase.WAITING
        assert (engine.device_pool.counts, engine.host_pool.counts) == ([0, 0], [0, 0])

        engine.bind()
        assert engine.reset("invalidate", "preempt") is True
        assert engine.statistics.resets == 1
        engine.admit(0)
        runtime.launch()
        memory.run(0, Stream.COMPUTE)
        memory.run(0, Stream.STORE)
        runtime.deliver(0, [0])
        runtime.handle_output()
        engine.finish(0)
        assert sorted(engine.host_pool.cache.blocks) == [1, 2]
        assert memory.misreads == []
    finally:
        memory.close()
