"""A small program that uses kvoffload as a server would, and records it: python serve.py LOG"""

import sys
from pathlib import Path

from kvoffload.config import Config
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.runtime import Runtime
from kvproof.targets.kvoffload_recorder import recorded


def serve(runtime: Runtime) -> None:
    """Six requests of two prompts, of two blocks each; the caches are reset while the first are stored."""
    for number in range(6):
        prompt = (1, 2) if number % 2 else (1, 3)
        runtime.engine.submit(number, prompt, prompt)
        runtime.step()
        if number == 1:
            runtime.engine.reset("invalidate", "preempt")
    while runtime.engine.has_work():
        runtime.step()


if __name__ == "__main__":
    engine = Engine.create(Config("pinning", device_blocks=8, host_blocks=8))
    with recorded(engine, Path(sys.argv[1]), look_every=4):
        serve(Runtime(engine, Ledger.create(1, 8, 8, gated=False)))
