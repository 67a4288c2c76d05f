"""The site: `make docs` fails on a broken link, and builds what there is."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.typing_page import ROOT

pytest.importorskip("mkdocs")
pytestmark = pytest.mark.pages

FLAGS = ("build", "--strict")


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *FLAGS],
        cwd=folder,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    return tmp_path


def test_it_builds_and_fetches_nothing(copied: Path) -> None:
    ran = built(copied)
    assert ran.returncode == 0, ran.stderr
    page = (copied / "build/site/tutorial/index.html").read_text()
    assert "From red to green" in page
    assert not re.findall(r'(?:src|href)="(https?://[^"]*(?:\.js|\.css|fonts)[^"]*)"', page)


@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](proofs.md#nowhere)"])
def test_a_broken_link_fails(copied: Path, link: str) -> None:
    page = copied / "docs/index.md"
    page.write_text(f"{page.read_text()}\n{link}\n")
    ran = built(copied)
    assert ran.returncode == 1
    assert "Aborted with 1 warnings in strict mode" in ran.stdout + ran.stderr


def test_make_docs_is_the_same_command() -> None:
    recipe = re.search(r"^docs: .*\n\t@(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert recipe[1] == f"NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs {' '.join(FLAGS)} $(ARGS)"
