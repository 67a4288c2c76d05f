"""Conformance tests under pytest: what fails is kept as a bundle and tried first; budget, replay, xdist, deaths."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ENGINE = """
import os
from kvproof.targets.kvoffload import Ledger

class Engine(Ledger):
    disciplines = ("pinning",)

    def perform(self, command):
        outcome = super().perform(command)
        if command.verb == "handle_output":
            {defect}
        return outcome

class Sound(Ledger):
    pass
"""

TESTS = """
from hypothesis import settings
import kvproof
from engine import Engine, Sound

FEW = {{"max_examples": 5, "stateful_step_count": 20}}

class TestSound(kvproof.conformance(Sound, **FEW)):
    settings = settings(kvproof.conformance(Sound, **FEW).settings, derandomize=True, database=None)

class TestEngine(kvproof.conformance(Engine, **FEW, apart={apart})):
    settings = settings(kvproof.conformance(Engine, **FEW).settings, derandomize=True, database=None)
"""

LOSES = "self.engine.device_pool.counts[0] -= 1"


def written(folder: Path, defect: str = LOSES, apart: bool = False) -> None:
    (folder / "engine.py").write_text(ENGINE.format(defect=defect))
    (folder / "test_engine.py").write_text(TESTS.format(apart=apart))


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    plugins = ["-p", "no:kvproof", "-p", "kvproof.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *plugins, "--rootdir", str(folder), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def order(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.split()[0].split("::")[1] for line in done.stdout.splitlines() if "::runTest" in line and "%" in line]


class Failed(NamedTuple):
    """What a run has said in which a test failed, and the folder in which it ran."""

    first: subprocess.CompletedProcess[str]
    folder: Path

    def copied(self, folder: Path) -> Path:
        """The same folder once more, to be changed; answers what is kept of the failure there."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        (kept,) = (folder / ".kvproof/failures").iterdir()
        return kept


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Failed:
    folder = tmp_path_factory.mktemp("failed")
    written(folder)
    return Failed(ran(folder), folder)


def test_a_failure_is_kept_tried_first_replayed_and_fixed(failed: Failed, tmp_path: Path) -> None:
    first = failed.first
    assert first.returncode == 1, first.stdout
    assert order(first) == ["TestSound", "TestEngine"]
    kept = failed.copied(tmp_path)
    assert {path.name for path in kept.iterdir()} == {
        "trace.itf.json",
        "report.txt",
        "verdict.json",
        "test_repro.py",
        "timeline.html",
    }
    verdict = json.loads((kept / "verdict.json").read_text())
    assert (verdict["engine"], verdict["commands"], verdict["minimal"]) == ("conformance", 4, "shortest")
    assert verdict["target"] == "engine.py:Engine"
    assert f"Replay: kvproof replay {kept.name} --target engine.py:Engine" in first.stdout
    assert f"In pytest: --kvproof-replay {kept.name}" in first.stdout

    again = ran(tmp_path)
    assert order(again) == ["TestEngine", "TestSound"]
    replayed = ran(tmp_path, "--kvproof-replay", kept.name[:3])
    assert (replayed.returncode, "1 failed, 1 skipped" in replayed.stdout) == (1, True)
    repro = ran(tmp_path, str(kept / "test_repro.py"))
    assert (repro.returncode, "Reproduced" in repro.stdout) == (1, True)

    written(tmp_path, defect="pass")
    assert "1 passed, 1 skipped" in ran(tmp_path, "--kvproof-replay", kept.name).stdout
    assert ran(tmp_path, str(kept / "test_repro.py")).returncode == 0


def test_a_kept_failure_that_cannot_be_replayed_any_more_is_not_green(failed: Failed, tmp_path: Path) -> None:
    kept = failed.copied(tmp_path)
    written(tmp_path, defect="pass")
    engine = tmp_path / "engine.py"
    engine.write_text(engine.read_text() + '\nEngine.verbs = frozenset({"submit", "schedule", "run"})\n')
    says = f"kept failure {kept.name} cannot be replayed: target engine.py:Engine takes no handle_output"
    replayed = ran(tmp_path, "--kvproof-replay", kept.name)
    assert (replayed.returncode, says in replayed.stdout) == (1, True)
    searched = ran(tmp_path)
    assert (searched.returncode, f"UserWarning: {says}" in searched.stdout) == (0, True)


def test_a_failure_that_cannot_be_kept_is_told_all_the_same(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / ".kvproof").write_text("a file stands where the folder should be")
    done = ran(tmp_path, "-k", "TestEngine")
    assert done.returncode == 1
    assert "Nonconforming: REFUTED owners-account-for-references" in done.stdout
    assert "The trace was not saved. ([Errno 20] Not a directory: " in done.stdout


def test_under_xdist_it_is_the_same(tmp_path: Path) -> None:
    written(tmp_path)
    done = ran(tmp_path, "-n", "2")
    assert "1 failed, 1 passed" in done.stdout
    (kept,) = (tmp_path / ".kvproof/failures").iterdir()
    replayed = ran(tmp_path, "-n", "2", "--kvproof-replay", kept.name)
    assert "1 failed, 1 skipped" in replayed.stdout


def test_a_budget_that_is_spent_is_not_green(tmp_path: Path) -> None:
    written(tmp_path, defect="pass")
    done = ran(tmp_path, "--kvproof-budget", "1ms")
    assert "2 failed" in done.stdout
    assert "CutShort: the budget of 0.001 s was spent after 0 commands" in done.stdout
    assert not (tmp_path / ".kvproof").exists()
    assert "2 passed" in ran(tmp_path, "--kvproof-budget", "10m").stdout


def test_a_target_that_may_die_is_run_apart(tmp_path: Path) -> None:
    written(tmp_path, defect="os._exit(7)", apart=True)
    done = ran(tmp_path)
    assert "1 failed, 1 passed" in done.stdout
    assert "Exit on handle_output(): its process ended with status 7." in done.stdout
    (kept,) = (tmp_path / ".kvproof/failures").iterdir()
    assert "its process ended with status 7" in (kept / "timeline.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kvproof-budget", "soon"), "--kvproof-budget 'soon' is not a time; write 60s, 2m or 500ms"),
        (("--kvproof-replay", "../x"), "no such failure is kept"),
    ],
)
def test_bad_usage_is_a_sentence(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    written(tmp_path)
    done = ran(tmp_path, *arguments)
    assert (done.returncode, words in done.stderr) == (4, True)
