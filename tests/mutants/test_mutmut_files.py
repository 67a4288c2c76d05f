"""What mutmut makes of a module, and how its mutants are called here. mutmut is there after `make mutants`."""

from pathlib import Path

import pytest

pytest.importorskip("mutmut")

from tests.mutants.mutmut_files import mutated, without_property_decorators
from tests.mutants.staging import SETTINGS

SOURCE = """\
class Pool:
    @property
    def full(self) -> bool:
        return not self.free

    @classmethod
    def fresh(cls) -> "Pool":
        return cls()


def most(counts):
    return max(counts)
"""


def test_a_property_is_a_method_that_is_made_one_afterwards() -> None:
    assert without_property_decorators(SOURCE).splitlines()[1:5] == [
        "",
        "    def full(self) -> bool:",
        "        return not self.free",
        "    full = property(full)",
    ]
    assert "    @classmethod" in without_property_decorators(SOURCE)


def test_a_mutant_is_known_by_the_lines_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    _, mutants = mutated("made.up", SOURCE)
    assert [mutant.key for mutant in mutants] == [
        ("made.up", "Pool.full", "return not self.free", "return self.free"),
        ("made.up", "most", "return max(counts)", "return max(None)"),
    ]
    assert mutants[0].name == "made.up.xǁPoolǁfull__mutmut_1"
