"""Looks for bugs of the bank with a plain stateful test and with a random walk, and prints one line for each.

python -m tests.bugs.compare ID ...                five seeds each: default settings of Hypothesis, and a random walk
python -m tests.bugs.compare --examples 2000 ID ...   instead with that many examples for a seed
python -m tests.bugs.compare --sound               the sound kvoffload, which must pass

A line says in how many of the seeds the bug was met, and how many seconds of processor time all of them took.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.bugs.bank import BANK, BY_ID
from tests.bugs.compare.serving import COMMANDS, Serving
from tests.bugs.compare.stateful import PlainMachine
from tests.bugs.planting import ROOT, plant

SEEDS = 5
DEFAULT_EXAMPLES = 100
WALKS, LENGTH = 400, 50
"""A random walk: as many fresh engines, and commands on each (counts)."""
LIMIT = 540.0
"""Seconds after which a bug is given up."""


def met(run: Callable[[], None]) -> bool:
    """Whatever is raised is a find, as it is for a test runner."""
    try:
        run()
    except Exception:  # noqa: BLE001  whatever it is, a test runner would call it a failure
        return True
    return False


def by_hypothesis(number: int, examples: int) -> bool:
    """Without shrinking, which would cost time and find nothing new. 50 steps at most: the default."""
    found = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
        print_blob=False,
    )
    return met(lambda: run_state_machine_as_test(seed(number)(PlainMachine), settings=found))


def by_walk(number: int) -> bool:
    """Commands and arguments with equal chances."""
    chance = random.Random(number)

    def walk() -> None:
        for _ in range(WALKS):
            serving = Serving(lambda options: chance.choice(list(options)))
            for _ in range(LENGTH):
                getattr(serving, chance.choice(COMMANDS))()
                serving.check()
            serving.drain()

    return met(walk)


def measured(examples: int, walks: bool) -> dict[str, list[float]]:
    """In the interpreter that has the bug: how often, and seconds of processor time for all seeds."""
    ways: dict[str, Callable[[int], bool]] = {f"hypothesis {examples}": lambda number: by_hypothesis(number, examples)}
    if walks:
        ways["walk"] = by_walk
    answer = {}
    for name, way in ways.items():
        started = time.process_time()
        times = sum([way(number) for number in range(SEEDS)])
        answer[name] = [times, time.process_time() - started]
    return answer


def line(name: str, examples: int, walks: bool) -> str:
    """What `measured` says of one bug, or of the sound kvoffload, in an interpreter of its own."""
    with tempfile.TemporaryDirectory() as folder:
        if name != "sound":
            plant(BY_ID[name], Path(folder))
        paths = [folder, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        call = f"print(json.dumps(measured({examples}, {walks})))"
        code = f"import json; from tests.bugs.compare.__main__ import measured; {call}"
        try:
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            return f"{name:34} no answer within {LIMIT:.0f} s"
    if done.returncode:
        raise RuntimeError(f"the comparison of {name} failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    parts = [f"{way}: {times} of {SEEDS} seeds, {seconds:.1f} s" for way, (times, seconds) in found.items()]
    return f"{name:34} {'   '.join(parts)}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bugs.compare", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--examples", type=int, default=DEFAULT_EXAMPLES)
    parser.add_argument("--sound", action="store_true", help="the sound kvoffload instead of bugs")
    asked = parser.parse_args(arguments)
    unknown = set(asked.ids) - BY_ID.keys()
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank")
    names = ["sound"] if asked.sound else asked.ids or [bug.id for bug in BANK]
    for name in names:
        print(line(name, asked.examples, walks=asked.examples == DEFAULT_EXAMPLES), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
