"""A test as teams have them: it asserts that everybody is served, and nothing about what a reset answered."""

from kvoffload.config import Config
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.runtime import Runtime


def test_everybody_is_served_after_a_reset() -> None:
    engine = Engine.create(Config("pinning", device_blocks=8, host_blocks=8))
    runtime = Runtime(engine, Ledger.create(1, 8, 8, gated=False))
    for number in range(3):
        engine.submit(number, (1, 2 + number), (1, 2 + number))
    runtime.step()
    engine.reset("invalidate", "preempt")
    while engine.has_work():
        runtime.step()
    assert {str(request.phase) for request in engine.requests.values()} == {"DONE"}
