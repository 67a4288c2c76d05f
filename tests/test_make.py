"""What `make test` leaves to another command is run by that one, and CI runs every one of them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()

PART_OF = {
    "bank": ("bugs", ["bugs"]),
    "pages": ("docs", ["docs"]),
    "proofs": ("prove", ["proofs", "specs/proof"]),
    "recount": ("recount", ["recount"]),
}
"""Marker -> the target of make that runs the tests that have it, and the folders in which it looks for them."""


def recipe(target: str) -> str:
    found = re.search(rf"^{target}: .*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None
    return found[1]


def test_every_test_is_run_by_one_target() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert [marker.partition(":")[0] for marker in settings["markers"]] == list(PART_OF)
    assert '-m "not pages and not bank and not proofs and not recount" $(ARGS)' in recipe("test")
    for marker, (target, folders) in PART_OF.items():
        assert f"$(TESTS) -m {marker} {' '.join(f'tests/{folder}' for folder in folders)}" in recipe(target)


def test_marked_tests_are_where_their_target_looks() -> None:
    marked = {
        (marker, path.parent.relative_to(ROOT / "tests").as_posix())
        for path in (ROOT / "tests").rglob("test_*.py")
        for marker in re.findall(r"pytest\.mark\.(\w+)", path.read_text())
        if marker in PART_OF
    }
    assert marked == {(marker, folder) for marker, (_, folders) in PART_OF.items() for folder in folders}


def test_ci_runs_them_all() -> None:
    commands = re.findall(r"^make (\w+)(?: ARGS=s1)?$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert {"test", *(target for target, _ in PART_OF.values())} <= set(commands)
