"""What recording costs a live kvoffload engine: CPU time of a scheduler step, recorded and not recorded, side by side.

python bench/record_log.py [STEPS]     (default 3000; of each discipline)

Two engines serve the same requests on the host device, step by step in turn, and one is recorded. Before its next step
all copies of the last one are over: so both have the same to do, and meet the same noise of the machine, and the median
is taken of what the recorded one took more in the same step. The time is that of the stepping thread (CPU): a step is
`Runtime.step`, and what a client asks before it. What the threads of the streams take is not in it, nor what the
recorder's own takes, which is said beside it. Once the lines are made at the end: that is what noting costs. Once they
are made meanwhile: on a machine without an idle core the two threads wait for each other too.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from operator import sub
from pathlib import Path
from statistics import median

from kvoffload.config import Config, Discipline
from kvoffload.devices.host import Host
from kvoffload.engine import Engine
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvproof.targets.kvoffload_recorder import Recorder

AT_ONCE = 32
"""Requests that are served at the same time (count)."""

BLOCKS, HOST_BLOCKS, WORKERS = 4096, 16384, 2
PROMPT, DECODED = 64, 8
"""Blocks of a request."""


class Served:
    """One engine, and the requests that come to it. They share prompts."""

    def __init__(self, discipline: Discipline, seed: int) -> None:
        self.engine = Engine.create(Config(discipline, BLOCKS, HOST_BLOCKS, WORKERS))
        self.device = Host(WORKERS, BLOCKS, HOST_BLOCKS, layers=1)
        self.runtime = Runtime(self.engine, self.device)
        self.chance = random.Random(seed)
        self.submitted = 0
        self.serving: list[int] = []

    def step(self) -> None:
        engine = self.engine
        for request in [number for number in self.serving if engine.requests[number].phase is Phase.DONE]:
            engine.collect(request)
            self.serving.remove(request)
        while len(self.serving) < AT_ONCE:
            shared, own = self.chance.randrange(16), self.chance.getrandbits(46)
            prompt = [(1 + shared << 56) + at for at in range(PROMPT // 2)]
            total = prompt + [1 + (own << 8) + at for at in range(PROMPT // 2 + DECODED)]
            engine.submit(self.submitted, total[:PROMPT], total)
            self.serving.append(self.submitted)
            self.submitted += 1
        self.runtime.step()

    def wait(self) -> None:
        """Until everything that was launched has run, so that each step has something to do, and the same each time."""
        self.device.drain()


class Timed(Recorder):
    """Knows how long its own thread was at it. beside: seconds of CPU."""

    beside = 0.0

    def flush(self, yielding: bool = False) -> None:
        began = time.thread_time()
        super().flush(yielding)
        self.beside += time.thread_time() - began


class NotedOnly(Timed):
    """Makes its lines at the end."""

    def flush(self, yielding: bool = False) -> None:
        if self._closing.is_set():
            super().flush(yielding)


def seconds(call: Callable[[], None]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    for discipline, kind in product(("pinning", "fencing"), (NotedOnly, Timed)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "engine.log"
            plain, recorded = Served(discipline, 0), Served(discipline, 0)
            recorder = kind(recorded.engine, path)
            recorder.write_beside()
            recorded.engine.watched_by(recorder)
            took: dict[Served, list[float]] = {plain: [], recorded: []}
            for step in range(steps):
                for served in (plain, recorded) if step % 2 else (recorded, plain):
                    took[served].append(seconds(served.step))
                    served.wait()
            recorder.close()
            for served in (plain, recorded):
                served.device.close()
            lines, size = len(path.read_bytes().splitlines()), path.stat().st_size
        off, more = median(took[plain]), median(map(sub, took[recorded], took[plain]))
        print(
            f"{discipline}, {kind.__name__}: {steps:,} steps of {off * 1e6:.0f} us of CPU, "
            f"recorded {more * 1e6:+.0f} us: {100 * more / off:+.1f}%; "
            f"beside it {recorder.beside / steps * 1e6:.0f} us; {lines:,} lines, {size / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
