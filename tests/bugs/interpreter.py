"""An interpreter of its own whose kvoffload has a bug in it: what is asked there is answered as JSON."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bugs.bug import Bug
from tests.bugs.planting import ROOT, plant


def answer_of(bug: Bug | None, module: str, expression: str, limit: float) -> Any:
    """What an expression of names of a module evaluates to in an interpreter that has the bug; None: the sound one.

    limit  elapsed seconds. TimeoutError beyond it, for a mutant may go round in circles; RuntimeError if it fails.
    """
    name = "the sound kvoffload" if bug is None else bug.id
    with tempfile.TemporaryDirectory() as folder:
        if bug is not None:
            plant(bug, Path(folder))
        code = f"import json; from {module} import *; print(json.dumps({expression}))"
        paths = [folder, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"no answer within {limit:.0f} s") from None
    if done.returncode:
        raise RuntimeError(f"the interpreter with {name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def require_planted() -> None:
    """In such an interpreter: RuntimeError unless the kvoffload that is imported is the one with the bug."""
    import kvoffload

    if not Path(kvoffload.__file__).is_relative_to(Path.cwd()):
        raise RuntimeError(f"kvoffload is the one in {kvoffload.__file__}, and not the one with the bug")
