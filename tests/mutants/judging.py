"""Has the staged mutants judged, by pytest in an interpreter that sees the staged copy and nothing else of ours."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mutants"


class Suite(NamedTuple):
    """What is mutated, as patterns of paths below the source root, and the tests that judge it, less what `forking`
    leaves out."""

    name: str
    mutated: tuple[str, ...]
    judges: tuple[str, ...]

    @property
    def quick_judges(self) -> tuple[str, ...]:
        """All but the searches."""
        return tuple(judge for judge in self.judges if not judge.startswith("tests/search/"))


CONTROL_PLANE = Suite(
    "control-plane",
    mutated=(
        "kvoffload/block_pool.py",
        "kvoffload/cache_events.py",
        "kvoffload/completions/*.py",
        "kvoffload/config.py",
        "kvoffload/connectors/*.py",
        "kvoffload/deadlines.py",
        "kvoffload/engine.py",
        "kvoffload/launched_step.py",
        "kvoffload/ordering.py",
        "kvoffload/plain.py",
        "kvoffload/plan.py",
        "kvoffload/prefix_cache.py",
        "kvoffload/promotions.py",
        "kvoffload/request.py",
        "kvoffload/runtime.py",
        "kvoffload/scheduler.py",
        "kvoffload/stores/*.py",
        "kvoffload/transfer_job.py",
        "kvoffload/watching.py",
        "kvoffload/worker.py",
    ),
    judges=(
        "tests/impl/test_asynchronous_scheduling.py",
        "tests/impl/test_block_pool.py",
        "tests/impl/test_cache_events.py",
        "tests/impl/test_choices_below_host.py",
        "tests/impl/test_connector_outputs.py",
        "tests/impl/test_deadlines.py",
        "tests/impl/test_engine.py",
        "tests/impl/test_failing_copies.py",
        "tests/impl/test_fence.py",
        "tests/impl/test_marks.py",
        "tests/impl/test_ordering.py",
        "tests/impl/test_pickling.py",
        "tests/impl/test_promoted_requests.py",
        "tests/impl/test_random_driving.py",
        "tests/impl/test_refusals.py",
        "tests/impl/test_requests.py",
        "tests/impl/test_reset.py",
        "tests/impl/test_runtime.py",
        "tests/impl/test_second_tier.py",
        "tests/impl/test_sliding_windows.py",
        "tests/impl/test_stores.py",
        "tests/impl/test_watching.py",
        "tests/seeds",
        "tests/search/test_counts.py::test_the_product_search_sees_every_state_and_takes_every_transition",
    ),
)
"""kvoffload without devices and bytes."""

PREDICATES = Suite(
    "predicates",
    mutated=("kvspecs/liveness/*.py", "kvspecs/safety/*.py"),
    judges=(
        "tests/search/test_counts.py::test_each_mode_alone",
        "tests/search/test_counts.py::test_named_scopes",
        "tests/specs/test_agreement.py",
        "tests/specs/test_events.py",
        "tests/specs/test_goals.py",
        "tests/specs/test_orders_made_by_hand.py",
        "tests/specs/test_planted_bugs.py",
        "tests/specs/test_sentences_of_resets.py",
        "tests/specs/test_sentences_of_states.py",
        "tests/specs/test_sentences_of_the_second_tier.py",
        "tests/specs/test_sentences_of_transitions.py",
    ),
)

SUITES = (CONTROL_PLANE, PREDICATES)


class Judged(NamedTuple):
    """outcome: `killed` by the test `by`; `timeout` in it; `survived` all; `not called` by any; or `not tried`."""

    mutant: Mutant
    outcome: str
    by: str | None

    @property
    def noticed(self) -> bool:
        return self.outcome in ("killed", "timeout")


class CannotJudge(Exception):
    """The tests fail with nothing mutated, or cannot be collected."""


def judged(stage: Path, mutants: Sequence[Mutant], judges: Sequence[str], longest: float = math.inf) -> list[Judged]:
    """What became of each mutant, of those that are staged there, by the tests that take at most so many seconds of
    CPU. Raises CannotJudge."""
    names, outcomes = stage / "mutants.json", stage / "outcomes.jsonl"
    names.write_text(json.dumps([mutant.name for mutant in mutants]))
    arguments = ["-m", "pytest", "-q", "--capture=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "error"]
    arguments += ["--assert=plain", "--tb=native"]  # to tell why a mutant fails would cost more than the test
    arguments += ["--import-mode=importlib", "-p", "tests.mutants.forking", "--mutants", str(names)]
    arguments += ["--outcomes", str(outcomes), "--longest", str(longest), *judges]
    paths = os.pathsep.join([str(stage / "src"), str(stage)])
    done = subprocess.run([sys.executable, *arguments], cwd=stage, env={**os.environ, "PYTHONPATH": paths})
    if done.returncode:
        raise CannotJudge(f"pytest ended with {done.returncode}; what it says stands above")
    by_name = {mutant.name: mutant for mutant in mutants}
    found = [json.loads(line) for line in outcomes.read_text().splitlines()]
    return [Judged(by_name[each["name"]], each["outcome"], each["by"]) for each in found]
