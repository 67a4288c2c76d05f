"""A log that is still written is followed: until it ends, until a line is not explained, or until somebody stops it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvproof.cli import main
from kvproof.engines import validate
from kvproof.job import Job
from kvproof.log.entry import BadLog
from kvproof.log.follow import Follower
from kvproof.log.lines import Lines
from kvproof.verdict import Result, Verdict
from tests.log.a_log import Line, lines, written


def watched(path: Path, monkeypatch: pytest.MonkeyPatch, writes: list[Callable[[], object]]) -> Result:
    """Each time that the log has no more, the next of these is done; then the watch is stopped."""
    header = Lines(path).header
    monkeypatch.setattr(validate.time, "sleep", lambda seconds: None)
    pending = iter(writes)

    def cut() -> bool:
        write = next(pending, None)
        if write is not None:
            write()
        return write is None

    options = {"log": str(path), "follow": True}
    job = Job("validate", header.engine, "pinning", "", header.scope, header.contract, options=options)
    return validate.run(job, lambda words: None, cut)


def added(path: Path, *those: Line, end: str = "\n") -> Callable[[], object]:
    text = "\n".join(json.dumps(line) for line in those) + end

    def write() -> None:
        with path.open("a") as file:
            file.write(text)

    return write


def test_lines_are_judged_as_they_come_until_the_log_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = lines()
    path = written(tmp_path, some[:2])
    writes = [added(path, *some[2:5]), added(path, *some[5:]), added(path, {"end": "closed"})]
    result = watched(path, monkeypatch, writes)
    assert (result.verdict, result.detail) == (Verdict.PASSED, "all 8 lines explained, 4 runs inferred")


def test_the_first_line_that_is_not_explained_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = lines()
    some[4]["answered"] = True
    path = written(tmp_path, some[:2])
    result = watched(path, monkeypatch, [added(path, *some[2:4]), added(path, *some[4:])])
    assert (result.verdict, result.property) == (Verdict.REFUTED, "true-reset-serves-nothing-old")


def test_a_log_that_says_that_it_ends_and_goes_on_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, [*lines(), {"end": "closed"}, {"do": {"verb": "schedule"}}])
    result = watched(path, monkeypatch, [])
    assert result.verdict is Verdict.ERROR
    assert "line 11, comes after the end of the log" in result.detail


def test_half_a_line_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = lines()
    path = written(tmp_path, some[:2])
    text = json.dumps(some[2])

    def half(part: str) -> Callable[[], object]:
        return lambda: path.write_text(path.read_text() + part)

    result = watched(path, monkeypatch, [half(text[:9]), half(text[9:] + "\n"), added(path, {"end": "closed"})])
    assert (result.verdict, result.counts["commands"]) == (Verdict.PASSED, 3)


def test_whoever_stops_it_is_told_how_far_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, lines()[:3])
    result = watched(path, monkeypatch, [])
    assert result.verdict is Verdict.UNDETERMINED
    assert result.detail == "all 3 lines so far are explained; the log has not ended"


def test_a_log_that_becomes_shorter_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, lines())
    result = watched(path, monkeypatch, [lambda: path.write_text("")])
    assert result.verdict is Verdict.ERROR
    assert "has become shorter while it was read" in result.detail


def test_the_verb_says_the_same_as_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [*lines(), {"end": "closed"}])
    assert main(["watch", str(path)]) == 0
    assert "all 8 lines explained, 4 runs inferred." in capsys.readouterr().out
    assert main(["watch", str(written(tmp_path, lines())), "--budget", "1s"]) == 3
    assert "UNDETERMINED" in capsys.readouterr().out
    assert main(["watch", str(tmp_path / "none")]) == 2


def test_a_failure_that_is_reported_after_others_waited_for_the_copy(tmp_path: Path) -> None:
    """validate knows of it from the beginning; who follows does not, and says so."""
    said: Any = lines()
    said[5]["failed"] = [0]
    path = written(tmp_path, said)
    log = Lines(path)
    assert log.failures() == {(0, 0): (0,)}

    unaware = Follower(str(path), log.header, {})
    *before, late, _, _ = log
    assert [unaware.take(entry) for entry in before] == [None] * 5
    with pytest.raises(BadLog, match="line 7, says late that job 0 failed"):
        unaware.take(late)
