"""The command line in this process, in an empty folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from kvproof import plan
from kvproof.cli import main, progress
from kvproof.rows import ROWS, Row

LITTLE = 300
"""Commands of the plan's fuzzing where a test is about what becomes of them, and not about how far they get (count)."""


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """No progress is shown, which would depend on how fast the machine is."""
    monkeypatch.setattr(progress, "INTERVAL_S", 3600.0)

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        status = main(arguments)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture
def little_fuzzing(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(row: Row) -> Row:
        options = {**row.options, "commands": LITTLE}
        return replace(row, options=options, foreign_options={}) if row.engine == "fuzz" else row

    monkeypatch.setattr(plan, "ROWS", tuple(map(short, ROWS)))
