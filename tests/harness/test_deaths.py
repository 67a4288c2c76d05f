"""A target that ends its process, or cannot be interrupted, is a violation with the trace that led there."""

import dataclasses
import os
import re
import subprocess
import time
from collections.abc import Callable
from itertools import count, product
from multiprocessing.connection import wait
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.harness.changed_file import job, written

from kvmodel.contract import Contract
from kvproof import reproduce, runner
from kvproof.child import in_child
from kvproof.failure import Failure
from kvproof.reproduction import Reproduced
from kvproof.runner import run_jobs
from kvproof.scopes import SCOPES
from kvproof.targets import journal
from kvproof.targets.command import Command
from kvproof.targets.journal import Journal
from kvproof.targets.outcome import Crashed
from kvproof.trace import itf
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

STEPPING = "work-remaining-keeps-the-engine-stepping"

SEGFAULT = "__import__('ctypes').string_at(0)"
EXIT = "os._exit(7)"
KILLED = "os.killpg(0, 9)"
DEADLOCK = "threading.Event().wait()"
DEADLOCK_IN_C = "[ctypes.PyDLL(None).pthread_mutex_lock(mutex) for mutex in 2 * [ctypes.create_string_buffer(64)]]"
"""No signal interrupts it, and no other thread runs. As the other, it costs no processor time."""


def found(folder: Path, engine: str, **changes: str) -> Failure:
    """What one engine says of a target that was changed in these places. A verdict other than REFUTED fails."""
    options = {"commands": 20} if engine == "fuzz" else {}
    todo = job(written(folder, **changes), engine, "s1", **options)
    (result,) = run_jobs([todo], costs=[1.0]).results
    assert (result.verdict, result.failure is not None) == (Verdict.REFUTED, True), result.detail
    assert result.failure is not None
    return result.failure


DEATHS = {
    "a segmentation fault": (SEGFAULT, STEPPING, r"SIGSEGV on handle_output\(\): its process was killed \("),
    "an exit": (EXIT, STEPPING, r"Exit on handle_output\(\): its process ended with status 7\."),
    "its process group killed": (KILLED, STEPPING, r"SIGKILL on handle_output\(\): its process was killed\."),
    "a deadlock in C": (
        DEADLOCK_IN_C,
        "everything-drains",
        r"Hang on handle_output\(\): no answer within 0\.5 s \(engine\.py:1",
    ),
    "a deadlock": (
        DEADLOCK,
        "everything-drains",
        r"Hang on handle_output\(\): no answer within (1|0\.5) s \(threading\.py:",
    ),
}


@pytest.mark.parametrize(
    ("death", "engine"),
    [*product(DEATHS, ["conform"]), *product([death for death in DEATHS if death != "a deadlock in C"], ["fuzz"])],
)
def test_a_death_is_a_violation_with_the_shortest_trace(death: str, engine: str, tmp_path: Path) -> None:
    statement, broken, sentence = DEATHS[death]
    failure = found(tmp_path, engine, perform=statement)
    assert failure.property == broken
    assert re.search(sentence, failure.sentence), failure.sentence
    assert [command.verb for command in failure.commands] == ["submit", "schedule", "run", "handle_output"]
    assert failure.notes[1].startswith("admit x: d0 d1, fresh d0 d1; compute"), "what came before is told"
    assert failure.cause == ("crash", "handle_output", failure.target_lines[0].partition(":")[0])


def test_a_death_while_it_is_opened_has_no_commands(tmp_path: Path) -> None:
    failure = found(tmp_path, "fuzz", opened=EXIT)
    assert failure.sentence == (
        "The target failed with Exit before the first command: its process ended with status 7."
    )
    assert failure.commands == ()


def test_a_death_in_the_view_is_one_of_the_command_before(tmp_path: Path) -> None:
    failure = found(tmp_path, "conform", view=f"{EXIT} if any(view.host_refs) else None")
    assert [command.verb for command in failure.commands] == ["submit", "schedule"]
    assert failure.cause == ("crash", "schedule", "Exit")


def test_patience_can_be_given(tmp_path: Path) -> None:
    target = written(tmp_path, perform="__import__('time').sleep(0.05)")
    patient = dataclasses.replace(job(target, "fuzz", "s1", commands=20), patience_s=60.0)
    hasty = dataclasses.replace(patient, patience_s=0.01)
    allowed, refused = run_jobs([patient, hasty], costs=[1.0, 1.0]).results
    assert allowed.verdict is Verdict.PASSED
    assert refused.failure is not None
    assert "no answer within 0.01 s" in refused.failure.sentence


@pytest.mark.usefixtures("little_fuzzing")
def test_a_death_on_the_command_line(folder: Path, cli) -> None:
    """From red to replayed, shown, shrunk, reproduced in pytest's own process, and fixed."""
    target = written(folder, perform=SEGFAULT)
    ran = cli("check", "--target", target, "--scope", "s1", "--patience", "5s")
    assert ran.status == 1
    assert f"REFUTED {STEPPING}" in ran.out
    assert "SIGSEGV on handle_output()" in ran.out
    (kept,) = (folder / ".kvproof/failures").iterdir()
    trace = itf.read(kept / "trace.itf.json")
    assert [command.verb for command in trace.commands] == ["submit", "schedule", "run", "handle_output"]
    assert "SIGSEGV" in (kept / "timeline.html").read_text()

    again = cli("replay", kept.name, "--target", target)
    assert (again.status, "SIGSEGV on handle_output()" in again.out) == (1, True)
    shown = cli("show", kept.name, "--target", target)
    assert (shown.status, "SIGSEGV" in shown.out, "admit x" in shown.out) == (1, True, True)
    shrunk = cli("shrink", kept.name, "--target", target)
    assert (shrunk.status, "4 commands became 4" in shrunk.out) == (1, True)
    with pytest.raises(Reproduced, match="SIGSEGV on handle_output"):
        reproduce(kept / "trace.itf.json", target=target)

    written(folder)
    assert "FIXED" in cli("replay", kept.name, "--target", target).out


def test_what_a_hung_target_has_started_ends_with_it() -> None:
    held, given = os.pipe()

    def hangs(progress: Callable[[str], None]) -> None:
        subprocess.Popen(["sleep", "600"], pass_fds=(given,))
        journal.calling(0.1)
        sum(count())

    death = in_child(hangs, Journal(), lambda words: None)
    os.close(given)
    assert isinstance(death, Crashed)
    assert (death.error, death.function) == ("Hang", "hangs")
    assert wait([held], 30.0), "whoever holds the other end still runs"
    os.close(held)


def test_what_is_beyond_reach_is_cut_short_by_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an hour, which passes as soon as the target hangs."""
    hangs = tmp_path / "hangs"
    target = written(tmp_path, perform=f"open({str(hangs)!r}, 'w').close(); {DEADLOCK_IN_C}")
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 3600 * hangs.exists()))
    patient = dataclasses.replace(job(target, "conform"), patience_s=60.0)
    outcome = run_jobs([patient], costs=[1.0], budget_s=3600.0, grace_s=0.5)
    assert outcome.results[0].verdict is Verdict.UNDETERMINED
    assert outcome.results[0].detail == "did not stop when it was told to, and was ended by force"


DIES_WITHOUT_A_RESET = """
            if not hasattr(self, "was_reset"): os._exit(7)
            self.engine.device_pool.counts[0] -= 1
        if command.verb == "reset":
            self.was_reset = True
"""


def test_a_death_on_the_way_is_not_taken_for_the_violation_that_is_shrunk(folder: Path, cli) -> None:
    """Without the reset that the trace begins with the target dies: the reset stays."""
    target = written(folder, perform=DIES_WITHOUT_A_RESET)
    scope = SCOPES["s3"]
    commands = [
        Command("submit", (1,)),
        Command("reset", ("invalidate", "preempt")),
        Command("submit", (0,)),
        Command("schedule"),
    ]
    commands += [Command("run", (0, "compute")), Command("handle_output")]
    trace = Trace(Contract("pinning"), scope, "s3", target, tuple(commands), Verdict.REFUTED, "x")
    itf.write(folder / "long.itf.json", trace)
    ran = cli("shrink", "long.itf.json", "--out", "short.itf.json", "--target", target)
    assert "6 commands became 5, and s3 became s1,device=1,prompts=a,aborts=no,preempts=no, in short.itf" in ran.out
    verbs = [command.verb for command in itf.read(folder / "short.itf.json").commands]
    assert sorted(verbs) == ["handle_output", "reset", "run", "schedule", "submit"]
