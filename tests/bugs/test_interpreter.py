"""An interpreter with a bug has that bug and no other; one that fails says of what, and one that hangs is ended."""

import os
import time
from pathlib import Path

import pytest

from tests.bugs.bank import BY_ID
from tests.bugs.interpreter import answer_of, let_go

HUNT = "tests.bugs.hunt"
SOURCE = "(Path(__import__('kvoffload').__file__).parent / {!r}).read_text()"


def test_each_has_its_own_bug_and_the_sound_one_none() -> None:
    for name in ("ids-rewound", "step-leaks"):
        bug = BY_ID[name]
        source: str = answer_of(bug, HUNT, SOURCE.format(bug.file), 60)
        assert bug.new in source
        assert bug.old not in source
    sound: str = answer_of(None, HUNT, SOURCE.format(BY_ID["step-leaks"].file), 60)
    assert BY_ID["step-leaks"].old in sound


def test_one_without_the_bug_is_not_taken_for_one_with_it() -> None:
    with pytest.raises(RuntimeError, match="the sound kvoffload failed") as raised:
        answer_of(None, HUNT, "require_planted()", 60)
    assert "and not the one with the bug" in str(raised.value)


def test_one_that_fails_says_of_what() -> None:
    with pytest.raises(RuntimeError, match="the interpreter with step-leaks failed") as raised:
        answer_of(BY_ID["step-leaks"], HUNT, "1 / 0", 60)
    assert "ZeroDivisionError" in str(raised.value)


def test_one_that_hangs_is_ended_and_the_next_is_asked() -> None:
    with pytest.raises(TimeoutError, match="no answer within 0 s"):
        answer_of(None, HUNT, "any(iter(int, 1))", 0.2)
    assert answer_of(None, HUNT, "'here'", 60) == "here"


def taken_to_begin_with() -> float:
    """In a fork: processor time of the process that has forked, in seconds."""
    of_parent = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, of_parent[11:13])) / os.sysconf("SC_CLK_TCK")  # utime and stime


def burnt() -> float:
    """In a fork: half a second of processor time."""
    while time.process_time() < 0.5:
        pass
    return time.process_time()


def test_processor_time_of_those_let_go_is_counted() -> None:
    """Also that of their forks, beside what they have taken themselves. Clocks tick each hundredth of a second."""
    let_go()
    before = sum(os.times()[2:4])
    begin = answer_of(None, "tests.bugs.test_interpreter", "taken_to_begin_with()", 60)
    fork = answer_of(None, "tests.bugs.test_interpreter", "burnt()", 60)
    let_go()
    assert sum(os.times()[2:4]) - before > begin + fork - 0.05


def test_a_bug_leaves_nothing_in_the_folder_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert answer_of(BY_ID["step-leaks"], HUNT, "str(Path.cwd())", 60) != str(tmp_path)
    assert list(tmp_path.iterdir()) == []
