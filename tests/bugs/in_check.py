"""Which row of `kvproof check` catches each bug: its jobs one by one, cheap ones first, until one is REFUTED.

    python -m tests.bugs.in_check [ID ...]

Takes some four minutes for the whole bank on two cores; what a job of the plan does is not shortened.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kvproof import plan
from kvproof.verdict import Verdict
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.bug import Bug
from tests.bugs.planting import ROOT, plant

LIMIT = 600.0
CORES = 2
NOT_CAUGHT = "NOT CAUGHT"


def first_refuted() -> str:
    """In the interpreter that has the bug: the row, the property, and how many commands the failure has."""
    planned = plan.build(plan.Selection())
    titles = [row.title for row in planned.rows for cell in row.cells.values() for _ in cell.jobs]
    jobs = sorted(zip(planned.seconds, titles, planned.jobs, strict=True), key=lambda one: one[0])
    for _, title, job in jobs:
        if job.engine == "explore":
            continue  # of the contract alone
        result = importlib.import_module(f"kvproof.engines.{job.engine}").run(job, lambda _: None, lambda: False)
        if result.verdict is Verdict.REFUTED and result.failure is not None:
            failure = result.failure
            return (
                f"{title}, {job.discipline} {failure.scope_name}: {failure.property}, {len(failure.commands)} commands"
            )
    return NOT_CAUGHT


def caught_by(bug: Bug) -> str:
    """What `first_refuted` says in an interpreter of its own."""
    with tempfile.TemporaryDirectory() as folder:
        plant(bug, Path(folder))
        paths = [folder, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            done = subprocess.run(
                [sys.executable, "-c", "from tests.bugs import in_check; print(in_check.first_refuted())"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            return f"{NOT_CAUGHT} within {LIMIT:.0f} s"
    if done.returncode:
        raise RuntimeError(f"the check of {bug.id} failed:\n{done.stderr}")
    return done.stdout.strip()


def main(ids: Sequence[str]) -> int:
    bugs = [BY_ID[name] for name in ids] or list(BANK)
    missed = 0
    with ThreadPoolExecutor(CORES) as pool:
        for bug, caught in zip(bugs, pool.map(caught_by, bugs), strict=True):
            print(f"{bug.id:31} {caught}", flush=True)
            missed += caught.startswith(NOT_CAUGHT)
    print(f"{len(bugs) - missed} of {len(bugs)} caught by kvproof check")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
