"""What `make test` leaves to another command is run by that one, and CI runs every one of them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()

PART_OF = {"bank": "bugs", "pages": "docs"}
"""Marker -> the target of make that runs the tests that have it."""


def recipe(target: str) -> str:
    found = re.search(rf"^{target}: .*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None
    return found[1]


def test_every_test_is_run_by_one_target() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert [marker.partition(":")[0] for marker in settings["markers"]] == list(PART_OF)
    assert '-m "not pages and not bank" $(ARGS)' in recipe("test")
    for marker, target in PART_OF.items():
        assert f"$(TESTS) -m {marker} tests/{target}" in recipe(target)


def test_marked_tests_are_where_their_target_looks() -> None:
    marked = {
        (marker, path.relative_to(ROOT / "tests").parts[0])
        for path in (ROOT / "tests").rglob("test_*.py")
        for marker in re.findall(r"pytest\.mark\.(\w+)", path.read_text())
        if marker in PART_OF
    }
    assert marked == {("bank", "bugs"), ("pages", "docs")}


def test_ci_runs_them_all() -> None:
    commands = re.findall(r"^make (\w+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert {"test", *PART_OF.values()} <= set(commands)
