"""What takes long shows that it goes on; pipes, NO_COLOR and narrow terminals are respected."""

import importlib
import inspect
import io
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from tests.cli import malformed
from tests.cli.conftest import row

from kvmodel.contract import Contract
from kvproof.cli import VERBS, progress
from kvproof.cli.progress import ProgressLine, waiting_for
from kvproof.job import Job
from kvproof.report.screen import coloured
from kvproof.runner import Status
from kvproof.scopes import SCOPES

JOB = Job("fuzz", "kvoffload", "pinning", "s1", SCOPES["s1"], Contract("pinning"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def status(seconds: float, words: str = "") -> Status:
    return Status(seconds, 0, 1, ((JOB, words),))


def test_a_line_a_second_without_escapes_in_a_pipe() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream)
    for tenths in range(35):
        line.show(status(tenths / 10, "1 of 2 commands"))
    line.clear()
    assert stream.getvalue().splitlines() == [
        f"  {second} s  0/1 done; fuzz s1 pinning: 1 of 2 commands" for second in (1, 2, 3)
    ]


def test_on_a_terminal_the_line_is_rewritten_and_taken_off() -> None:
    stream = Terminal()
    line = ProgressLine(stream)
    line.show(status(1.0, "\x1b[31m" + "x" * 200))
    line.clear()
    drawn, cleared = stream.getvalue().split("\r\x1b[K")[1:]
    assert (len(drawn), cleared) == (79, "")
    assert "\x1b" not in drawn


def test_a_dumb_terminal_is_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    ProgressLine(stream).show(status(1.0))
    assert stream.getvalue() == "  1 s  0/1 done; fuzz s1 pinning\n"


def test_no_color_and_pipes_have_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured("REFUTED x", terminal=True) == "\x1b[31;1mREFUTED\x1b[0m x"
    assert coloured("REFUTED x", terminal=False) == "REFUTED x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("REFUTED x", terminal=True) == "REFUTED x"


def test_waiting_is_told_and_ends_with_what_was_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 0.0)
    with waiting_for("importing x"):
        until = time.monotonic() + 60
        while "importing x" not in (said := capsys.readouterr().err) and time.monotonic() < until:
            pass
    assert re.match(r" +\d+ s  importing x\n", said)


QUICK = {"init", "list", "demo"}
"""Verbs that read or write a few files."""

SHOW_IT = ("run_planned", "run_one", "ProgressLine", "waiting_for", "validate.judged")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in QUICK])
def test_every_other_verb_uses_what_shows_progress(verb: str) -> None:
    source = inspect.getsource(importlib.import_module(f"kvproof.cli.{VERBS[verb].module}"))
    assert any(f"{name}(" in source for name in SHOW_IT)


@pytest.mark.parametrize("verb", ["replay", "show", "shrink", "doctor", "fuzz"])
def test_with_no_second_to_wait_it_says_something_before_its_report(
    folder: Path, cli, planned, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 0.0)
    planned(row("fuzz", "fuzzed"))
    (folder / "t.itf.json").write_text(malformed.SOUND)
    arguments = {"shrink": ("t.itf.json", "--out", "o.itf.json"), "doctor": (), "fuzz": ("--scope", "s1")}
    ran = cli("check" if verb == "fuzz" else verb, *arguments.get(verb, ("t.itf.json",)))
    assert re.search(r"^ +\d+ s  \S", ran.err, re.MULTILINE), ran.err


def in_a_terminal(folder: Path, columns: int, *arguments: str, **environment: str) -> str:
    """What kvproof writes to a terminal that is so wide."""
    inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # which xdist sets
    mine, its = pty.openpty()
    termios.tcsetwinsize(its, (24, columns))
    process = subprocess.Popen(
        [sys.executable, "-m", "kvproof", *arguments],
        cwd=folder,
        env={**inherited, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    said = b""
    while select.select([mine], [], [], 60)[0]:
        try:
            part = os.read(mine, 65536)
        except OSError:  # nobody holds the other end any more
            break
        said += part
    process.wait()
    os.close(mine)
    return said.decode()


def test_a_narrow_terminal_and_no_color(folder: Path) -> None:
    (folder / "t.itf.json").write_text(malformed.SOUND)
    said = in_a_terminal(folder, 40, "show", "t.itf.json", NO_COLOR="1")
    assert "\x1b[3" not in said
    drawn = [line for line in said.replace("\r\n", "\n").split("\n") if not line.startswith("\r")]
    assert max(len(line) for line in drawn) <= 40, drawn
    assert "schedule" in said
