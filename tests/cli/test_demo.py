"""`kvproof demo`: its engine has a bug, which is found by its shortest trace, and which can be mended."""

import re
from pathlib import Path

import pytest

from kvmodel.contract import Contract
from kvproof.engines import conform
from kvproof.job import Job
from kvproof.scopes import SCOPES
from kvproof.verdict import Result, Verdict

WRONG, RIGHT = "        return False\n", "        return True\n"


def searched(folder: Path) -> Result:
    job = Job("conform", f"{folder}/engine.py:Demo", "fencing", "s1", SCOPES["s1"], Contract("fencing"))
    return conform.run(job, lambda text: None, lambda: False)


def test_it_writes_an_engine_and_says_what_to_type(folder: Path, cli) -> None:
    ran = cli("demo")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "Wrote kvproof-demo/engine.py: an engine with one wrong line, and its adapter. Type next:\n"
        "  cd kvproof-demo\n"
        "  kvproof check\n"
    )
    assert sorted(path.name for path in (folder / "kvproof-demo").iterdir()) == ["engine.py", "pyproject.toml"]


def test_its_bug_is_found_by_nine_commands_and_is_one_line(folder: Path, cli) -> None:
    assert cli("demo", "wrong").status == 0
    result = searched(folder / "wrong")
    assert result.verdict is Verdict.REFUTED
    assert result.failure is not None
    assert (result.failure.property, len(result.failure.commands)) == ("no-use-after-free", 9)

    assert cli("demo", "right").status == 0
    engine = folder / "right" / "engine.py"
    text = engine.read_text()
    assert text.count(WRONG) == 1
    engine.write_text(text.replace(WRONG, RIGHT))
    assert searched(folder / "right").verdict is Verdict.PROVED


def test_the_folder_needs_no_flag(folder: Path, cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("demo")
    monkeypatch.chdir(folder / "kvproof-demo")
    ran = cli("conform", "--scope", "s1")
    assert ran.status == 1
    (found,) = re.findall(r"^REFUTED no-use-after-free .* id (\w{6})$", ran.out, re.MULTILINE)
    replayed = cli("replay", found)  # as pyproject.toml names this engine, its code may run
    assert replayed.status == 1
    assert "kvproof: " not in replayed.err  # progress may be there, where a machine is slow


def test_an_empty_folder_will_do(folder: Path, cli) -> None:
    assert cli("demo", ".").out.endswith("Type next:\n  kvproof check\n")
    assert (folder / "engine.py").is_file()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("full", "demo: 'full' is there already and is no empty folder; name another one"),
        ("file", "demo: 'file' is there already and is no empty folder; name another one"),
        ("no/folder", "demo: 'no/folder' cannot be written (No such file or directory)"),
    ],
)
def test_nothing_is_overwritten(folder: Path, cli, name: str, words: str) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "kept").write_text("kept")
    (folder / "file").write_text("kept")
    ran = cli("demo", name)
    assert (ran.status, ran.out, ran.err) == (2, "", f"kvproof: {words}\n")
    assert [path.name for path in (folder / "full").iterdir()] == ["kept"]
    assert (folder / "file").read_text() == "kept"
