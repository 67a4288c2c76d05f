"""The same seed does the same, step by step: in two processes that hash differently, all engines but soak."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kvproof.engines import ENGINES

FREE_RUNNING = {"soak"}
"""Not deterministic, and says so."""

ROOT = Path(__file__).parents[2]


def in_a_process_that_hashes(seed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.harness.everything_once"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_do_the_same() -> None:
    processes = [in_a_process_that_hashes(seed) for seed in ("1", "2")]
    first, second = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert first == second

    said: dict[str, dict[str, Any]] = json.loads(first)
    assert {name.split()[0] for name in said} == set(ENGINES) - FREE_RUNNING
    assert all(run["steps"] > 0 for run in said.values()), "every engine was followed step by step"
    given = [run["given"] for name, run in said.items() if name.startswith("fuzz kvoffload")]
    assert len(set(given)) == len(given) == 4, "another seed or discipline gives other commands"
    ids = {(name.split()[1].partition(":")[2], run["failure"][0]) for name, run in said.items() if run["failure"]}
    assert ids == {
        ("AlwaysFalse", "7d4b35"),
        ("StaleReferences", "baeb90"),
        ("HitsWhatIsNotCached", "e42a4a"),
        ("Dies", "306ce1"),
        ("Fragile", "a12f57"),
    }
