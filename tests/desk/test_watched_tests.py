"""`pytest --kvproof-watch`: tests that assert nothing about it turn red when the engine breaks the contract."""

import json
import os
import shutil
from pathlib import Path

import pytest

from kvproof.trace import store
from tests.bugs.bank import BANK
from tests.bugs.planting import plant
from tests.desk.test_pytest_plugin import ran

TESTS = """
import pytest
from kvoffload.config import Config
from kvoffload.devices.ledger import Ledger
from kvoffload.engine import Engine
from kvoffload.runtime import Runtime


@pytest.fixture
def serving():
    engine = Engine.create(Config("pinning", 4, 4))
    return Runtime(engine, Ledger.create(1, 4, 4, gated=True))


def reset_under_a_store(serving):
    serving.engine.submit(0, (1, 2), (1, 2))
    serving.step()
    serving.engine.reset("invalidate", "preempt")
    serving.engine.abort(0)


def test_a_reset_does_not_raise(serving):
    reset_under_a_store(serving)


@pytest.mark.kvproof_unwatched
def test_the_same_alone(serving):
    reset_under_a_store(serving)


def test_one_that_skips_itself(serving):
    reset_under_a_store(serving)
    pytest.skip("there is no GPU here")


def test_more_engines_than_are_recorded():
    for _ in range(102):
        Engine.create(Config("pinning", 4, 4))


def test_no_engine():
    pass
"""


def test_a_bug_that_no_test_asserts_about_turns_one_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_engine.py").write_text(TESTS)
    kept = tmp_path / ".kvproof" / "logs"
    sound = ran(tmp_path, "--kvproof-watch")
    assert "4 passed, 1 skipped" in sound.stdout
    said = "kvproof watched 102 engines in 3 tests: 8 lines explained; not recorded: 2 engines\n"
    assert said in sound.stdout
    assert not kept.exists()

    (bug,) = [bug for bug in BANK if bug.id == "reset-true-too-early"]
    paths = [str(plant(bug, tmp_path / "planted")), *filter(None, [os.environ.get("PYTHONPATH")])]
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        alone = ran(tmp_path)
        watched = ran(tmp_path, "--kvproof-watch", "-n", "2")
    assert "4 passed, 1 skipped" in alone.stdout
    assert "kvproof watched" not in alone.stdout
    assert "2 failed, 3 passed" in watched.stdout
    assert "FAILED test_engine.py::test_one_that_skips_itself" in watched.stdout
    assert "FAILED test_engine.py::test_a_reset_does_not_raise" in watched.stdout
    assert "REFUTED true-reset-serves-nothing-old   line 4, after 2 that are explained" in watched.stdout
    first, second = kept.iterdir()
    verdicts = {json.loads((folder / "verdict.json").read_text())["test"]: folder for folder in (first, second)}
    folder = verdicts["test_engine.py::test_a_reset_does_not_raise"]
    assert {path.name for path in folder.iterdir()} == {"engine.log", "report.txt", "verdict.json"}
    assert f"Again: kvproof validate .kvproof/logs/{folder.name}/engine.log" in (folder / "report.txt").read_text()
    (failure,) = (tmp_path / ".kvproof" / "failures").iterdir()  # both tests show the same
    assert f"Saved .kvproof/failures/{failure.name}. Replay: kvproof replay {failure.name}\n" in watched.stdout
    assert {path.name for path in failure.iterdir()} == {*store.FILES} - {store.ALONE_FILE}
    verdict = json.loads((folder / "verdict.json").read_text())
    assert (verdict["property"], verdict["explained"]) == ("true-reset-serves-nothing-old", 2)

    ran(tmp_path, "--kvproof-watch")
    assert not list(kept.iterdir())

    shutil.rmtree(tmp_path / ".kvproof")
    (tmp_path / ".kvproof").write_text("a file stands where the folder should be")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        not_kept = ran(tmp_path, "--kvproof-watch", "-k", "does_not_raise")
    assert "REFUTED true-reset-serves-nothing-old   line 4, after 2 that are explained" in not_kept.stdout
    assert "The log was not kept ([Errno 20] Not a directory: " in not_kept.stdout
    assert "The trace was not saved ([Errno 20] Not a directory: " in not_kept.stdout
