"""The command line in this process, in an empty folder, with fake engines in place of the plan's."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from kvproof import plan
from kvproof.cli import main, progress
from kvproof.rows import TARGET, Group, Row, both

FAKES = Path(__file__).parent


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FAKES))
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """No progress is shown, which would depend on how fast the machine is."""
    monkeypatch.setattr(progress, "INTERVAL_S", 3600.0)

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        status = main(arguments)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


def row(title: str, fake: str, *, group: Group = TARGET, devices: Sequence[str] = ("ledger",)) -> Row:
    """A row of the plan whose engine is a fake."""
    return Row(title, group, f"fake_engines:{fake}", tuple(devices), check=both("s1", "s2"))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts rows in place of the plan's."""

    def use(*rows: Row) -> None:
        monkeypatch.setattr(plan, "ROWS", rows)

    return use
