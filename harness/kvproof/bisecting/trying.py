"""A trace replayed by this kvproof on the target as it is in a worktree."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from kvproof.bisecting.search import Judgement

OURS = ("kvproof", "kvmodel", "kvspecs")
"""Packages that judge. They stay what they are, even where they are in the repository that is bisected."""


class Tried(NamedTuple):
    """What became of it, why in a few words, and the id of the failure, if it failed."""

    judgement: Judgement
    why: str
    id: str = ""


@dataclass(frozen=True)
class Trying:
    """How a trace is replayed.

    trace       its file; id: of the failure that is looked for; empty: any
    repository, worktree   tops of the repository, and of the worktree that stands for it
    flags       of `kvproof replay`, beside the target
    """

    trace: Path
    id: str
    target: str
    repository: Path
    worktree: Path
    flags: tuple[str, ...] = ()

    def try_it(self) -> Tried:
        """Replay it where the worktree is now."""
        here = self._there(Path.cwd())
        with tempfile.TemporaryDirectory(prefix="kvproof-bisect-") as folder:
            report = Path(folder) / "report.json"
            command = [sys.executable, "-m", "kvproof", "replay", str(self.trace), "--json", str(report)]
            done = subprocess.run(
                [*command, "--target", self._target(), *self.flags],
                cwd=here if here.is_dir() else self.worktree,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(self._path()), "PYTHONDONTWRITEBYTECODE": "1"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            if not report.is_file():
                return Tried("skipped", _last_line(done.stderr) or "it could not be judged")
            (result,) = json.loads(report.read_text(encoding="utf-8"))["results"]
        if result["verdict"] == "REFUTED":
            if self.id in ("", result["id"]):
                return Tried("bad", str(result["property"]), str(result["id"]))
            return Tried("skipped", f"it breaks {result['property']} there, which is another failure")
        if result["verdict"] in ("FIXED", "PASSED"):
            return Tried("good", "")
        return Tried("skipped", _last_line(done.stderr) or str(result["verdict"]))

    def _target(self) -> str:
        place, colon, attribute = self.target.rpartition(":")
        if not place.endswith(".py"):
            return self.target
        return f"{self._there(Path(place).resolve())}{colon}{attribute}"

    def _there(self, path: Path) -> Path:
        """The same place in the worktree, if it is in the repository."""
        path = path.resolve()
        return self.worktree / path.relative_to(self.repository) if path.is_relative_to(self.repository) else path

    def _path(self) -> Sequence[str]:
        """Where modules are looked for: in the worktree rather than in the repository, but for those that judge."""
        judging = {str(root) for root in map(_root_of, OURS)}
        found = [Path(entry).resolve() for entry in sys.path if entry]
        moved = [str(self._there(path)) for path in found if path.is_relative_to(self.repository)]
        return list(dict.fromkeys([*sorted(judging), *moved]))


def _root_of(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parents[1]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("kvproof: ")[:200] if lines else ""
