"""`kvproof init`: the file that it writes is an adapter, and says by itself what it lacks."""

import subprocess
import sys
from pathlib import Path

import pytest

METHODS = "__init__, submit, preempt, abort, reset, schedule, handle_output, run, report, report_all, view"
"""In the order of the file."""


def test_it_writes_an_adapter_and_says_what_comes_next(folder: Path, cli) -> None:
    ran = cli("init")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "Wrote adapter.py. Fill in what is marked @abstractmethod; what is left says\n"
        "  kvproof check --target adapter.py:MyEngine\n"
    )
    text = (folder / "adapter.py").read_text()
    assert "    kvproof check --target adapter.py:MyEngine\n" in text
    assert "FILE" not in text


def test_check_names_every_method_that_is_to_be_filled_in(folder: Path, cli) -> None:
    cli("init", "mine.py")
    ran = cli("check", "--target", "mine.py:MyEngine")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"kvproof: target mine.py:MyEngine is not filled in yet: 11 methods are marked @abstractmethod ({METHODS}); "
        "fill each in and remove its mark\n"
    )


def test_what_is_filled_in_is_not_named_any_more(folder: Path, cli) -> None:
    cli("init", "half.py")
    before, mark, after = (folder / "half.py").read_text().rpartition("    @abstractmethod\n")
    assert mark
    (folder / "half.py").write_text(before + after)
    assert "10 methods are marked @abstractmethod (__init__, submit," in cli("fuzz", "--target", "half.py:MyEngine").err
    (folder / "last.py").write_text(before.replace("    @abstractmethod\n", "", 9) + after)
    assert "1 method is marked @abstractmethod (report_all);" in cli("fuzz", "--target", "last.py:MyEngine").err


def test_with_no_mark_left_it_is_a_target(folder: Path, cli) -> None:
    cli("init", "done.py")
    text = (folder / "done.py").read_text().replace("    @abstractmethod\n", "")
    (folder / "done.py").write_text(text)
    ran = cli("fuzz", "--target", "done.py:MyEngine", "--scope", "s1")
    assert ran.status == 1  # its view answers None, which is a violation of the target and no longer a question
    assert "view answered None, which is no View" in ran.out


@pytest.mark.parametrize("check", [("ruff", "check"), ("ruff", "format", "--check"), ("mypy", "--strict")])
def test_the_file_passes(folder: Path, cli, check: tuple[str, ...]) -> None:
    cli("init")
    ran = subprocess.run([sys.executable, "-m", *check, "adapter.py"], capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("taken.py", "init: 'taken.py' is there already and is not overwritten; name another file"),
        (
            "no/folder/adapter.py",
            "init: 'no/folder/adapter.py' cannot be written (No such file or directory)",
        ),
        ("adapter.txt", "init: 'adapter.txt' is no name of a Python file; write one such as adapter.py"),
        ("my-engine.py", "init: 'my-engine.py' is no name of a Python file; write one such as adapter.py"),
    ],
)
def test_nothing_is_overwritten_or_half_written(folder: Path, cli, name: str, words: str) -> None:
    (folder / "taken.py").write_text("kept\n")
    ran = cli("init", name)
    assert (ran.status, ran.out, ran.err) == (2, "", f"kvproof: {words}\n")
    assert sorted(path.name for path in folder.iterdir()) == ["taken.py"]
    assert (folder / "taken.py").read_text() == "kept\n"
