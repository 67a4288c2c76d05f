"""The toy engine of the how-to: its adapter is right, and with the bug mended nothing is found in it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvmodel import Contract
from kvproof.engines import fuzz
from kvproof.job import Job
from kvproof.scopes import parse_scope
from kvproof.verdict import Verdict
from tests.docs.typing_page import ROOT

pytestmark = pytest.mark.pages

TOY = ROOT / "docs" / "how-to" / "toy_engine"
BUG = 'if job.direction == "store":'
MENDED = 'if job.direction == "store" and job.wanted:'


@pytest.fixture(name="mended")
def mended_toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(TOY, tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "engine.py").read_text()
    assert text.count(BUG) == 1
    (tmp_path / "engine.py").write_text(text.replace(BUG, MENDED))
    monkeypatch.delitem(sys.modules, "engine", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_both_files_are_typed() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "engine.py", "adapter.py"], cwd=TOY, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout


def test_the_page_fits_the_engine() -> None:
    page = (TOY.parent / "check-your-engine.md").read_text()
    assert f"sed -i 's/{BUG}/{MENDED}/' engine.py" in page
    lines = len((TOY / "adapter.py").read_text().splitlines())
    assert re.search(rf"in {round(lines, -1)} lines", page)


@pytest.mark.parametrize(("scope", "taken"), [("fuzz,meanings=invalidate,survivors=no", "Wake"), ("s3", "Report")])
def test_the_mended_toy_keeps_the_contract(mended: Path, scope: str, taken: str) -> None:
    name, sizes = parse_scope(scope)
    job = Job("fuzz", f"{mended}/adapter.py:MyEngine", "pinning", name, sizes, Contract("pinning"), seed=7)
    result = fuzz.run(job, lambda text: None, lambda: False)
    assert (result.verdict, result.failure) == (Verdict.PASSED, None)
    assert result.counts[f"action:{taken}"] > 20
