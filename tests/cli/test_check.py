"""A whole run with fake engines: screens, JSON, exit statuses, known violations, what was not run, and Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kvmodel.contract import DISCIPLINES
from kvproof import plan
from kvproof.report import json_report
from kvproof.rows import CONTRACT, TARGET, Group, Instances, Row, at, both
from kvproof.scopes import parse_scope
from kvproof.targets.registry import DEVICES
from kvproof.trace import itf

REPORT_KEYS = [
    "engine",
    "target",
    "discipline",
    "scope",
    "property",
    "verdict",
    "seconds",
    "states",
    "transitions",
    "trace",
    "id",
]


def row(
    title: str,
    fake: str,
    *,
    group: Group = TARGET,
    devices: tuple[str, ...] = ("ledger",),
    check: Instances | None = None,
    exhaustive: bool = True,
) -> Row:
    """A row of the plan whose engine is a fake."""
    check = check or both("s1", "s2")
    return Row(title, group, f"fake_engines:{fake}", devices, check=check, exhaustive=exhaustive)


EXPLORED = row(
    "explore", "explored", group=CONTRACT, devices=(), check={"pinning": at("s1", "s2"), "fencing": at("s1")}
)
CONFORMED = row("conform ledger", "conformed")
GREEN = (
    EXPLORED,
    CONFORMED,
    row("conform host", "bytes_compared", devices=("host",), check=both("s2")),
    row("fuzz", "fuzzed", devices=("ledger", "host"), check=both("s7"), exhaustive=False),
    row("conform cuda", "conformed", devices=("cuda",)),
)


def without_seconds(text: str) -> str:
    return re.sub(r"in [\d.]+ s", "in N s", text)


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "no_cuda", lambda gated=False: "no CUDA device")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvproof.cli.planned.cores", lambda: 2)


def test_the_green_screen(cli, planned) -> None:
    planned(*GREEN)
    ran = cli("check")
    assert ran.status == 0
    assert without_seconds(ran.out) == (
        """\
kvproof 0.1.0   target kvoffload   seed 0   2 cores     yours: --target MODULE:CLASS
                            pinning                           fencing
contract   explore s1-s2    PROVED  2,168 states              PROVED  1,084 states (s1)
kvoffload  conform ledger   PROVED  2,946/2,946 (s1-s2)       PROVED  2,946/2,946 (s1-s2)
           conform host     PROVED  473/473 (s2), all bytes   PROVED  473/473 (s2), all bytes
           fuzz             PASSED  12,000 commands           PASSED  12,000 commands
           conform cuda     SKIPPED no CUDA device            SKIPPED no CUDA device
covered    2/2 actions, 2/2 guard outcomes; compared 1/1 view fields
PASSED in N s; nothing was cut short. fake_engines:fuzzed samples; the rest is exhaustive as stated.
"""
    )


@pytest.mark.parametrize(
    ("fake", "told"),
    [("asked_at_each_pair", "at 205 pairs\n"), ("asked_at_a_sample", "at 2,100 of 2,807 pairs\n")],
)
def test_the_screen_says_of_how_many_pairs_the_invariants_of_the_proofs_were_asked(
    cli, planned, fake: str, told: str
) -> None:
    planned(row("conform ledger", fake, check={"pinning": at("s2")}))
    ran = cli("check", "--discipline", "pinning")
    assert f"1/1 actions; invariants of the proofs {told}" in ran.out


def test_the_red_screen_ends_with_the_command_that_replays_it(folder: Path, cli, planned) -> None:
    planned(EXPLORED, row("conform ledger", "refuted"), row("fuzz", "refuted_later", exhaustive=False))
    ran = cli("check", "--discipline", "pinning")
    assert ran.status == 1
    assert without_seconds(ran.out) == (
        """\
kvproof 0.1.0   target kvoffload   seed 0   2 cores     yours: --target MODULE:CLASS
                            pinning
contract   explore s1-s2    PROVED  2,168 states
kvoffload  conform ledger   REFUTED 9abbd5 (s2)
           fuzz             REFUTED 9abbd5 (s2)
covered    2/2 actions, 1/2 guard outcomes
REFUTED in N s; 1 violation, shown below.

REFUTED owners-account-for-references   kvoffload, pinning, s1, conform   6 commands (shortest)   id 9abbd5
Reset released device block d0 while transfer job 1, a store that reads it, is still in flight.
  1 submit x "ab"
  2 schedule             admit x: fresh d0; compute
  3 run w0 compute       d0 holds "a"
  4 handle output        d0 published as "a"
  5 schedule             job 1: store d0 -> h0, launched
> 6 reset invalidate     answered False
      contract   d0 references 2: x, job 1 (ABANDONED)   h0 references 1: job 1
      kvoffload  d0 references 1: x                      h0 references 0, in the free queue
Also found by conform ledger s2 pinning, fuzz ledger s1 pinning, fuzz ledger s2 pinning.
Rule: kvmodel/rules/reset.py, from vLLM PR 39726. Next danger: job 1 may read d0 after x frees it.
Saved .kvproof/failures/9abbd5. Replay: kvproof replay 9abbd5
"""
    )
    saved = folder / ".kvproof" / "failures" / "9abbd5"
    assert (saved / "report.txt").read_text() == ran.out.partition("\n\n")[2]
    trace = itf.read(saved / "trace.itf.json")
    assert (trace.property, trace.device, len(trace.commands)) == ("owners-account-for-references", "ledger", 6)


def test_the_schema_of_the_json(folder: Path, cli, planned) -> None:
    planned(EXPLORED, row("conform ledger", "refuted"), GREEN[-1])
    ran = cli("check", "--json", "report.json", "--discipline", "pinning")
    report = json.loads((folder / "report.json").read_text())
    assert list(report) == ["schema", "verdict", "results"]
    assert (report["schema"], report["verdict"]) == (1, "REFUTED")
    assert [list(result) for result in report["results"]] == [REPORT_KEYS] * 5
    assert report["results"][0] == {
        "engine": "fake_engines:explored",
        "target": "kvoffload",
        "discipline": "pinning",
        "scope": "s1",
        "property": None,
        "verdict": "PROVED",
        "seconds": 0.1,
        "states": 1084,
        "transitions": 2000,
        "trace": None,
        "id": None,
    }
    assert report["results"][2]["trace"] == ".kvproof/failures/9abbd5/trace.itf.json"
    assert report["results"][2]["id"] == "9abbd5"
    assert report["results"][2]["property"] == "owners-account-for-references"
    assert report["results"][4]["verdict"] == "SKIPPED"
    assert ran.status == 1


def test_json_on_standard_output_is_alone_there(cli, planned) -> None:
    planned(row("fuzz", "prints"))
    ran = cli("check", "--json", "-")
    assert json.loads(ran.out)["verdict"] == "PASSED"
    assert "PASSED in" in ran.err


@pytest.mark.parametrize(
    ("fakes", "status", "verdict"),
    [
        (("explored",), 0, "PROVED"),
        (("explored", "fuzzed"), 0, "PASSED"),
        (("raises", "refuted"), 1, "REFUTED"),
        (("raises", "counterexample"), 2, "ERROR"),
        (("explored", "counterexample"), 4, "COUNTEREXAMPLE_TO_INDUCTION"),
    ],
)
def test_exit_statuses(cli, planned, fakes: tuple[str, ...], status: int, verdict: str) -> None:
    planned(*(row(fake, fake) for fake in fakes))
    ran = cli("check", "--device", "ledger", "--scope", "s1")
    assert ran.status == status
    assert f"\n{verdict} in " in ran.out


def test_a_spent_budget_is_never_green(cli, planned) -> None:
    planned(row("explore", "until_cut"), row("fuzz", "until_cut"), CONFORMED)
    ran = cli("check", "--budget", "300ms")
    assert ran.status == 3
    assert "UNDETERMINED" in ran.out
    assert "not started: the budget of 0.3 s was spent" in ran.out
    assert "nothing was cut short" not in ran.out


def test_a_crash_is_a_row_that_says_how(cli, planned) -> None:
    planned(row("a", "raises"), row("b", "segfaults"), row("c", "leaves"), row("d", "exits"), CONFORMED)
    ran = cli("check", "--scope", "s1", "--discipline", "pinning")
    assert ran.status == 2
    assert re.search(r"ERROR a ledger s1 pinning: ValueError: two lines \(fake_engines.py:\d+\)", ran.out)
    assert "was killed by SIGSEGV without a result" in ran.out
    assert "exited with status 7 without a result" in ran.out
    assert "SystemExit: 0" in ran.out
    assert "PROVED  1,473/1,473" in ran.out  # the others have run
    assert "Traceback (most recent call last)" in ran.err


def test_known_violations_are_green_and_fixed_ones_are_named(folder: Path, cli, planned) -> None:
    planned(row("conform ledger", "refuted"))
    (folder / "known.txt").write_text("# ours\n9abbd5 issue 812\n\n123456   issue 7 # old\n")
    ran = cli("check", "--known", "known.txt", "--json", "r.json")
    assert ran.status == 0
    assert "KNOWN" in ran.out
    assert "known violation 9abbd5 of owners-account-for-references: issue 812" in ran.out
    assert "FIXED known: 123456 did not occur; take it off the list (issue 7)" in ran.out
    verdicts = [result["verdict"] for result in json.loads((folder / "r.json").read_text())["results"]]
    assert verdicts == ["KNOWN"] * 4 + ["FIXED"]


def test_a_part_of_the_plan_does_not_say_that_something_is_fixed(folder: Path, cli, planned) -> None:
    planned(CONFORMED)
    (folder / "known.txt").write_text("9abbd5\n")
    assert "FIXED" not in cli("check", "--known", "known.txt", "--scope", "s1").out


def test_what_nothing_reached_fails_the_whole_plan_only(cli, planned) -> None:
    planned(EXPLORED)
    ran = cli("check")
    assert ran.status == 2
    assert "ERROR coverage: no engine reached guard:admit/no-room" in ran.out
    assert cli("check", "--scope", "s1").status == 0


def test_a_device_that_is_required_is_an_error_where_it_is_missing(cli, planned) -> None:
    planned(CONFORMED, GREEN[-1])
    assert cli("check", "--scope", "s1").status == 0
    ran = cli("check", "--scope", "s1", "--require", "cuda")
    assert ran.status == 2
    assert "conform cuda     ERROR   --require cuda: no CUDA device" in ran.out
    assert "PROVED" in ran.out
    assert "ERROR" not in cli("check", "--scope", "s1").out


def test_a_device_that_is_required_is_no_error_where_it_is(cli, planned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "no_cuda", lambda gated=False: "")
    planned(CONFORMED, GREEN[-1])
    ran = cli("check", "--scope", "s1", "--require", "cuda")
    assert ran.status == 0
    assert "conform cuda     PROVED" in ran.out


def devices_of(**selection: Any) -> dict[str, set[str]]:
    """The devices of each row that has any, and of those that it skips the reason."""
    built = plan.build(plan.Selection(disciplines=("pinning",), **selection))
    return {
        row.title: {job.device for job in cell.jobs} or {cell.skipped}
        for row in built.rows
        if row.row.devices
        for cell in row.cells.values()
    }


def test_cuda_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    without = devices_of()
    assert (without["conform cuda"], without["soak cuda"]) == ({"no CUDA device"}, {"no CUDA device"})
    assert without["fuzz"] == {"ledger", "host"}
    monkeypatch.setattr(plan, "no_cuda", lambda gated=False: "")
    present = devices_of()
    assert (present["conform cuda"], present["soak cuda"], present["soak host"]) == ({"cuda"}, {"cuda"}, {"host"})
    assert present["fuzz"] == {"ledger", "host", "cuda"}
    alone = devices_of(engines=("conform", "fuzz", "soak"), device="cuda")
    assert alone == {"conform cuda": {"cuda"}, "fuzz": {"cuda"}, "soak cuda": {"cuda"}}
    assert "soak cuda" not in devices_of(engines=("soak",), device="host")


def test_where_streams_cannot_be_gated_only_the_soak_runs_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "no_cuda", lambda gated=False: "no cuStreamWaitValue32" if gated else "")
    devices = devices_of()
    assert (devices["conform cuda"], devices["soak cuda"]) == ({"no cuStreamWaitValue32"}, {"cuda"})
    assert devices["fuzz"] == {"ledger", "host"}


def test_a_foreign_target_has_a_row_for_what_it_skips(folder: Path, cli, planned) -> None:
    planned(
        EXPLORED, Row("conform ledger", TARGET, "fake_engines:conformed", ("ledger",), both("s1"), foreign=both("s1"))
    )
    (folder / "engine.py").write_text("class Engine: pass\n")
    ran = cli("check", "--target", "engine.py:Engine")
    assert ran.status == 0
    assert "SKIPPED foreign target" in ran.out
    assert re.search(r"^Engine +fake_engines:conformed PROVED", ran.out, re.MULTILINE)
    (folder / "pyproject.toml").write_text("[tool.kvproof]\ntarget = 'engine.py:Engine'\n")
    assert without_seconds(cli("check").out) == without_seconds(ran.out)


def test_a_store_that_cannot_be_written_does_not_hide_the_violation(folder: Path, cli, planned) -> None:
    planned(row("conform ledger", "refuted"))
    (folder / ".kvproof").write_text("a file where the folder belongs")
    ran = cli("check")
    assert ran.status == 1
    assert "REFUTED owners-account-for-references" in ran.out
    assert "The trace was not saved." in ran.out


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from kvproof import plan
from kvproof.cli import main
from kvproof.rows import TARGET, Row, both
def row(title, fake):
    return Row(title, TARGET, "fake_engines:" + fake, ("ledger",), both("s1"))
plan.ROWS = (row("conform", "refuted"), row("fuzz", {fake!r}))
if __name__ == "__main__":
    sys.exit(main(["check", "--json", "report.json"]))
"""


@pytest.mark.parametrize("fake", ["until_cut", "deaf"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_keeps_what_was_found_and_says_so(folder: Path, fake: str, number: signal.Signals) -> None:
    (folder / "run.py").write_text(SCRIPT.format(tests=str(Path(__file__).parent), fake=fake))
    process = subprocess.Popen(
        [sys.executable, "run.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that, as from a terminal, every process of the group gets it
    )
    assert process.stderr is not None
    seen = [process.stderr.readline()]
    while "2/4 done" not in seen[-1]:
        assert seen[-1]
        seen.append(process.stderr.readline())
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted, 2 cut short; what was found is kept" in out
    assert "REFUTED owners-account-for-references" in out
    assert (folder / ".kvproof/failures/9abbd5/trace.itf.json").is_file()
    assert "Traceback" not in err
    report: Mapping[str, list[Mapping[str, str]]] = json.loads((folder / "report.json").read_text())
    assert sorted(result["verdict"] for result in report["results"]) == ["REFUTED"] * 2 + ["UNDETERMINED"] * 2


@pytest.mark.parametrize("verb", [("list", "targets"), ("list", "scopes"), ("doctor",)])
def test_every_verb_has_json(cli, verb: tuple[str, ...]) -> None:
    ran = cli(*verb, "--json", "-")
    report = json.loads(ran.out)
    assert report["schema"] == json_report.SCHEMA
    assert report["results"]
    assert all(list(result) == REPORT_KEYS for result in report["results"])


def test_the_plan_of_this_repository_makes_sense() -> None:
    whole = plan.build(plan.Selection(nightly=True))
    assert whole.jobs
    assert all(job.device in ("", *DEVICES) for job in whole.jobs)
    titles = [planned.title for planned in whole.rows]
    assert len(set(titles)) == len(titles)
    for planned in whole.rows:
        assert set(planned.cells) == set(DISCIPLINES)
        assert all(bool(cell.jobs) != bool(cell.skipped) for cell in planned.cells.values())


def test_with_a_scope_there_is_no_row_that_is_for_other_kinds_of_target() -> None:
    whole = plan.build(plan.Selection(scope=parse_scope("s1")))
    titles = [planned.title for planned in whole.rows]
    assert titles == ["explore", "conform ledger", "fuzz", "soak host", "soak cuda"]
