"""What is kept of a failure: found by one process, and each of its files used by another."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof import reproduction
from kvproof.bundle import files_of
from kvproof.failure import Failure
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

ROOT = Path(__file__).parents[2]

ENGINE = '''
from tests.harness.broken_targets import StaleReferences


class Engine(StaleReferences):
    """The adapter shows references as they were a command ago."""


class Mended(StaleReferences):
    def view(self):
        return super(StaleReferences, self).view()
'''


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `kvproof fuzz` has found the bug of engine.py."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "engine.py").write_text(ENGINE)
    done = kvproof(folder, "fuzz", "--target", "engine.py:Engine", "--discipline", "pinning")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "owners-account-for-references" in done.stdout
    return folder


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def kvproof(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kvproof", *words],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def kept(folder: Path) -> Path:
    (only,) = (folder / ".kvproof" / "failures").iterdir()
    return only


def test_the_folder_has_everything(failed: Path) -> None:
    assert sorted(path.name for path in kept(failed).iterdir()) == [
        "report.txt",
        "test_repro.py",
        "timeline.html",
        "trace.itf.json",
        "verdict.json",
    ]
    about = json.loads((kept(failed) / "verdict.json").read_text())
    assert about["id"] == kept(failed).name
    assert (about["verdict"], about["property"]) == ("REFUTED", "owners-account-for-references")
    assert about["commands"] == 2
    assert "<title>kvproof: owners-account-for-references</title>" in (kept(failed) / "timeline.html").read_text()


@pytest.mark.parametrize(("name", "status"), [("Engine", 1), ("Mended", 0)])
def test_the_test_fails_as_it_did_and_passes_when_it_is_mended(failed: Path, name: str, status: int) -> None:
    test = kept(failed) / "test_repro.py"
    copy = failed / f"test_repro_{name}.py"
    text = test.read_text().replace("engine.py:Engine", f"engine.py:{name}")
    copy.write_text(
        text.replace('Path(__file__).with_name("trace.itf.json")', repr(str(kept(failed) / "trace.itf.json")))
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(copy)],
        cwd=failed, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout
    assert ("Reproduced: " in done.stdout) == (status == 1)
    assert ("REFUTED owners-account-for-references" in done.stdout) == (status == 1)


def test_replay_says_what_became_of_it(failed: Path) -> None:
    again = kvproof(failed, "replay", kept(failed).name, "--target", "engine.py:Engine")
    assert (again.returncode, "REFUTED in" in again.stdout) == (1, True)
    mended = kvproof(failed, "replay", kept(failed).name, "--target", "engine.py:Mended")
    assert (mended.returncode, "FIXED in" in mended.stdout) == (0, True)


def test_code_in_a_name_is_never_code() -> None:
    evil = '"""\nimport os; os._exit(7)\n"""'
    failure = Failure(evil, evil, f"x.py:{evil}", "pinning", "s1", Scope(1, 1, 1, ("a",)), "fuzz", (), 0)
    text = reproduction.test_of(failure, evil)
    compile(text, "test_repro.py", "exec")
    assert "\nimport os" not in text


def hung() -> Failure:
    scope = Scope(1, 1, 1, ("a",))
    return Failure("everything-drains", "It hangs.", "x.py:X", "pinning", "s1", scope, "fuzz", (), 0)


def test_a_test_that_needs_no_kvproof_says_what_it_needs() -> None:
    failure = dataclasses.replace(hung(), alone="def test_it() -> None: ...")
    trace = Trace(Contract("pinning"), failure.scope, "s1", failure.target, (), Verdict.REFUTED)
    text = files_of(failure, trace, 0.0, None)["test_alone.py"]
    assert "Run it with pytest where the engine can be imported: it fails while" in text
    assert text.endswith('"""\n\n\ndef test_it() -> None: ...')


def test_what_the_adapter_cannot_say_without_kvproof_is_a_sentence_in_the_other_test() -> None:
    without = "There is no test_alone.py beside this, which would need no kvproof: it fails before the first command."
    assert "test_alone" not in reproduction.test_of(hung(), "")
    lacking = dataclasses.replace(hung(), alone_lacks="it fails before the first command")
    assert without in reproduction.test_of(lacking, "").replace("\n", " ")
