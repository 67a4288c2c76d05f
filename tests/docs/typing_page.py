"""Types what a page says, command by command, as somebody would who has just cloned the repository."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

CLONED = ("docs", "tests", "model", "specs", "impl", "harness", "pyproject.toml", "Makefile", "constraints.txt")
ROOT = Path(__file__).parents[2]

PATIENCE_S = 1200

ELLIPSIS = "..."
"""A line of the page that stands for any number of lines, none included."""


class Ran(NamedTuple):
    status: int
    lines: tuple[str, ...]


class Desk:
    """A folder in which commands are typed one after the other; `cd` of one holds for the next."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "kvproof"
        self.place.mkdir()
        for name in CLONED:
            (self.place / name).symlink_to(ROOT / name)
        tools = folder / "bin"
        tools.mkdir()
        for name, words in (("kvproof", f"{sys.executable} -m kvproof"), ("python", sys.executable)):
            path = f'PYTHONPATH="$PYTHONPATH:{os.environ.get("PYTHONPATH", "")}"'
            (tools / name).write_text(f'#!/bin/sh\n{path} exec {words} "$@"\n')
            (tools / name).chmod(0o755)
        self.left = folder / "left"
        self.status = 0
        own = {"PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "120"}
        outside = {"GITHUB_STEP_SUMMARY", "VIRTUAL_ENV", "PYTHONPATH"}
        self.environment = {name: value for name, value in os.environ.items() if name not in outside} | own

    def type(self, command: str, script: bool = False) -> Ran:
        """One command, with what it prints on both streams, lines of progress excepted. It finds the exit status of
        the one before it in `$?`. script: it is a whole one, which ends at the first command that fails."""
        begun = "set -e" if script else f"(exit {self.status})"
        ran = subprocess.run(
            ["bash", "-c", f"trap 'pwd > {self.left}' EXIT\n{begun}\n{command}\n"],
            cwd=self.place,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
        )
        self.place, self.status = Path(self.left.read_text().strip()), ran.returncode
        lines = [line.rstrip() for line in ran.stdout.splitlines() if not _PROGRESS.match(line)]
        while lines and not lines[-1]:
            lines.pop()
        return Ran(ran.returncode, tuple(lines))


_PROGRESS = re.compile(r" *\d+ s  \d+/\d+ done;?")
_VARYING = (
    (re.compile(r"\b\d+(\.\d+)? ?s\b"), "N s"),
    (re.compile(r"\b\d+ cores?\b"), "N cores"),
    (re.compile(r"commit [0-9a-f]{7}\b"), "commit N"),
    (re.compile(r"\b\d+/\d+ (actions|guard outcomes)\b"), r"N \1"),
    (re.compile(r'"seconds": [\d.]+'), '"seconds": N'),
)
"""What one machine prints otherwise than the next one; and how much of the machine was covered, which changes with each
rule that is added to it."""


def agrees(printed: tuple[str, ...], seen: tuple[str, ...]) -> bool:
    """Whether a command printed what the page says, up to times, and to what the page leaves out with `...`."""
    pattern = [r"(?:.*\n)*?" if line.strip() == ELLIPSIS else re.escape(steady(line)) + r"\n" for line in printed]
    return re.fullmatch("".join(pattern), "".join(f"{steady(line)}\n" for line in seen)) is not None


def steady(line: str) -> str:
    """A line without what differs from machine to machine."""
    for varying, name in _VARYING:
        line = varying.sub(name, line)
    return line.rstrip()
