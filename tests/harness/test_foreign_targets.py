"""Targets from elsewhere, from the command line: by file, by module, by pyproject.toml; and what is known of them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.conftest import Cli

from kvmodel.contract import Contract
from kvproof.engines import conform, fuzz
from kvproof.job import Job
from kvproof.scopes import SCOPES, parse_scope
from kvproof.search.modes import MODES
from kvproof.verdict import Verdict

STEP_TARGET = Path(__file__).with_name("step_target.py")

MINE = """
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer

class Mine(Ledger):
    exact = {exact}
    disciplines = ("pinning",)

    def perform(self, command):
        outcome = super().perform(command)
        if command.verb in {broken!r} and isinstance(outcome, Answer):
            return Answer(False) if command.verb == "reset" else 1 // 0
        return outcome
"""


def kvproof(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line as people run it, in a folder."""
    return subprocess.run([sys.executable, "-m", "kvproof", *words], cwd=folder, capture_output=True, text=True)


def said(out: str, title: str) -> set[str]:
    """What the rows say that begin so, in a screen of one discipline."""
    line = re.compile(rf"^(?:contract|\w+)? +{title}\b.*?([A-Z]{{5,}} .*)$", re.MULTILINE)
    return {re.sub(r" +", " ", text).strip() for text in line.findall(out)}


def mine(folder: Path, *broken: str, exact: bool = True) -> str:
    (folder / "mine.py").write_text(MINE.format(exact=exact, broken=broken))
    return "mine.py:Mine"


@pytest.mark.usefixtures("little_fuzzing")
def test_a_step_target_in_a_file(folder: Path, cli: Cli) -> None:
    shutil.copy(STEP_TARGET, folder / "mine.py")
    ran = cli("check", "--target", "mine.py:StepKVOffload", "--discipline", "pinning", "--json", "r.json")
    assert ran.status == 0, ran.err
    assert said(ran.out, "explore") == {"SKIPPED foreign target"}
    assert said(ran.out, "conform") == {"SKIPPED takes no single decisions"}
    (fuzzed,) = said(ran.out, "fuzz")
    assert re.fullmatch(r"PASSED [\d,/]+ commands", fuzzed)
    assert said(ran.out, "soak") == {"SKIPPED drives kvoffload's devices"}
    assert "compared 7/14 view fields" in ran.out
    assert re.search(r"^PASSED in [\d.]+ s; nothing was cut short\. fuzz samples\.$", ran.out, re.MULTILINE)
    report = json.loads((folder / "r.json").read_text())
    assert report["verdict"] == "PASSED"
    assert {(result["engine"], result["verdict"]) for result in report["results"]} == {
        ("explore", "SKIPPED"),
        ("conform", "SKIPPED"),
        ("fuzz", "PASSED"),
        ("soak", "SKIPPED"),
    }


@pytest.mark.usefixtures("little_fuzzing")
def test_a_step_target_in_a_package_that_pyproject_names(folder: Path, cli: Cli) -> None:
    (folder / "engines").mkdir()
    shutil.copy(STEP_TARGET, folder / "engines" / "mine.py")
    (folder / "pyproject.toml").write_text("[tool.kvproof]\ntarget = 'engines.mine:StepKVOffload'\n")
    ran = cli("fuzz", "--discipline", "fencing", "--scope", "s1")
    assert ran.status == 0, ran.err
    assert ran.out.startswith("kvproof 0.1.0   target engines.mine:StepKVOffload   seed 0")
    (fuzzed,) = said(ran.out, "fuzz")
    assert re.fullmatch(r"PASSED [\d,/]+ commands", fuzzed)


def test_an_exact_target_is_searched(tmp_path: Path) -> None:
    target = f"{tmp_path}/{mine(tmp_path)}"
    job = Job("conform", target, "pinning", "s1", SCOPES["s1"], Contract("pinning"))
    result = conform.run(job, lambda text: None, lambda: False)
    assert (result.verdict, result.failure) == (Verdict.PROVED, None)
    assert result.counts["edges"] > 500


def test_a_target_that_declares_no_resets_of_one_tier_is_given_none(tmp_path: Path) -> None:
    target = f"{tmp_path}/{mine(tmp_path)}"
    path = tmp_path / "mine.py"
    path.write_text(path.read_text().replace("disciplines = ", 'tiers = ("all",)\n    disciplines = '))
    name, scope = parse_scope("s1,aborts=no,preempts=no")
    job = Job("conform", target, "pinning", name, scope, Contract("pinning"), options={"modes": "alone"})
    result = conform.run(job, lambda text: None, lambda: False)
    assert result.verdict is Verdict.PROVED
    assert result.detail.startswith(f"{len(MODES) - 2} variants, ")  # neither `tiers` nor `second`

    name, scope = parse_scope("s1,meanings=evict,tiers=host")
    for engine in (conform, fuzz):
        job = Job("conform", target, "pinning", name, scope, Contract("pinning"))
        result = engine.run(job, lambda text: None, lambda: False)
        assert (result.verdict, result.detail) == (Verdict.SKIPPED, "declares no reset of the host tier alone")


@pytest.mark.usefixtures("little_fuzzing")
def test_a_target_that_chooses_in_its_own_way_is_fuzzed_alone(folder: Path, cli: Cli) -> None:
    ran = cli("check", "--target", mine(folder, exact=False), "--scope", "s1")
    assert ran.status == 0, ran.err
    assert said(ran.out, "conform") == {"SKIPPED chooses in its own way"}
    (fuzzed,) = said(ran.out, "fuzz")
    assert re.fullmatch(r"PASSED [\d,/]+ commands", fuzzed)


@pytest.mark.usefixtures("little_fuzzing")
def test_what_is_known_is_green_and_the_search_goes_on_past_it(folder: Path, cli: Cli) -> None:
    run = "check", "--target", mine(folder, "reset"), "--scope", "s1"
    ran = cli(*run)
    assert ran.status == 1
    (known,) = set(re.findall(r"REFUTED false-reset-has-a-cause .* id (\w{6})", ran.out))
    (folder / "known.txt").write_text(f"{known}  issue 7\n")
    green = cli(*run, "--known", "known.txt")
    assert green.status == 0, green.out
    assert f"known violation {known} of false-reset-has-a-cause: issue 7" in green.out
    assert re.search(r"^Mine +conform +KNOWN", green.out, re.MULTILINE)

    mine(folder, "reset", "finish")
    worse = cli(*run, "--known", "known.txt")
    assert worse.status == 1
    assert re.findall(r"^REFUTED (\S+-\S+) ", worse.out, re.MULTILINE) == ["work-remaining-keeps-the-engine-stepping"]
    assert re.search(r"ZeroDivisionError: integer division or modulo by zero \(mine\.py:\d+\)", worse.out)


def test_a_violation_of_a_file_is_replayed_and_shrunk(tmp_path: Path) -> None:
    target = mine(tmp_path, "finish")
    assert kvproof(tmp_path, "fuzz", "--target", target, "--scope", "s3").returncode == 1
    (found,) = (path.name for path in (tmp_path / ".kvproof/failures").iterdir())
    assert kvproof(tmp_path, "replay", found).returncode == 2  # a trace does not decide whose code runs
    assert kvproof(tmp_path, "replay", found, "--target", target).returncode == 1
    shrunk = kvproof(tmp_path, "shrink", found, "--target", target)
    assert shrunk.returncode == 1
    (before, after) = re.findall(r"(\d+) commands? became (\d+),", shrunk.stdout)[0]
    assert before == after  # fuzz has shrunk it
    mine(tmp_path)
    fixed = kvproof(tmp_path, "replay", found, "--target", target)
    assert fixed.returncode == 0
    assert "FIXED in " in fixed.stdout
