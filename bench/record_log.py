"""What recording costs a live kvoffload engine: CPU time of a scheduler step, recorded and not recorded, side by side.

python bench/record_log.py [STEPS]     (default 3000; of each discipline; ends with status 1 if a step costs 5% more)

A step is what an engine's own thread does for one: `Runtime.step`, and what clients ask before it (32 requests are
served at once: those that have ended are collected, others come in their place). Its time is that thread's (CPU), so
that it says the same on a machine that does other things too. Two engines serve the same requests on the host device,
step by step in turn, and one is recorded. Before the next step all copies of the last one are over: both have the same
to do.

Two figures, and the larger one counts: what the recorder took of the step in its own calls, all of them, looks at the
pools included; and what the recorded step took more than the other, in pairs: their median, with its interval of 95%.
What is beside the step is no part of it, and said: a thread of the recorder's makes the lines.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from math import sqrt
from operator import sub
from pathlib import Path
from statistics import median

from kvoffload.config import Config, Discipline
from kvoffload.devices.host import Host
from kvoffload.engine import Engine
from kvoffload.request import Phase
from kvoffload.runtime import Runtime
from kvoffload.watching import Call
from kvproof.targets.kvoffload_recorder import Recorder

BOUND = 0.05
"""A recorded step costs less than so much of a step more."""

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
    """Knows how long it was at it. within: seconds of CPU in the engine's calls; beside: on its own thread."""

    within = beside = 0.0

    def __call__(self, engine: Engine, call: Call) -> None:
        began = time.thread_time()
        super().__call__(engine, call)
        self.within += time.thread_time() - began

    def flush(self, yielding: bool = False) -> None:
        began = time.thread_time()
        super().flush(yielding)
        self.beside += time.thread_time() - began


def seconds(call: Callable[[], None]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The interval that has the median with 95%: between two of the sorted values, whatever they are spread like."""
    ordered, aside = sorted(values), 0.98 * sqrt(len(values))
    return ordered[max(int(len(values) / 2 - aside), 0)], ordered[min(int(len(values) / 2 + aside), len(values) - 1)]


def cost(discipline: Discipline, steps: int) -> float:
    """What a recorded step costs more, as a part of it. Says what was measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "engine.log"
        plain, recorded = Served(discipline, 0), Served(discipline, 0)
        recorder = Timed(recorded.engine, path)
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
        size = path.stat().st_size
    off, more = median(took[plain]), list(map(sub, took[recorded], took[plain]))
    low, high = interval(more)
    within = recorder.within / sum(took[recorded])
    print(
        f"{discipline}: {steps:,} steps of {off * 1e6:.0f} us of CPU. In the recorder's calls "
        f"{recorder.within / steps * 1e6:.0f} us a step, {100 * within:.1f}%. In pairs {median(more) * 1e6:+.0f} us "
        f"({low * 1e6:+.0f} to {high * 1e6:+.0f}), {100 * median(more) / off:+.1f}% "
        f"({100 * low / off:+.1f}% to {100 * high / off:+.1f}%). "
        f"Beside the step {recorder.beside / steps * 1e6:.0f} us; {size / steps / 1e3:.0f} kB"
    )
    return max(within, median(more) / off)


def main() -> int:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    return int(max(cost(discipline, steps) for discipline in ("pinning", "fencing")) >= BOUND)


if __name__ == "__main__":
    sys.exit(main())
