"""What is kept of a failure of vLLM has a test that needs no kvproof: it fails as the target did, and passes without
the command that brings it about."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("vllm")

from tests.vllm.by_hand import release
from tests.vllm.versions import kept

from kvmodel import Machine
from kvproof.engines.run_of import failure_of, run_of
from kvproof.obligations.watched import Unreadable
from kvproof.obligations.workers import Workers
from kvproof.search.modes import Variant
from kvproof.targets.alone import Unsaid, direct_test
from kvproof.targets.divergence import Divergence
from kvproof.targets.open_for import opener
from kvproof.targets.vllm.driver import Copies, Vllm
from kvproof.targets.vllm.offloading import Offloading
from kvproof.targets.vllm.offloading_copies import OffloadingCopies
from kvproof.targets.vllm.private import as_known
from kvproof.targets.vllm.simple import Simple
from kvproof.targets.vllm.simple_copies import SimpleCopies
from kvproof.trace import itf

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("kvproof", "kvmodel", "kvspecs", "kvoffload"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
"""

CAUSES = {"0e3499": "# 3 reset evict of the host tier", "88aff6": "# 9 reset evict of the device tier"}
"""The command without which nothing of it happens."""


def written(identifier: str) -> str:
    """The test that is kept of what a trace shows here."""
    trace = itf.read(kept()[identifier])
    machine = Machine(trace.contract, trace.scope)
    run = run_of(machine, opener(trace.target, "", machine), trace.commands, lambda: False)
    assert run.divergence is not None
    variant = Variant(trace.scope_name, trace.scope, trace.contract)
    failure = failure_of(variant, trace.target, "fuzz", "", trace.commands, run.divergence, run.notes, "")
    assert failure.fingerprint == identifier
    return failure.alone


def of_simple() -> str:
    """What would be kept of 4060c7, in whatever release."""
    trace = itf.read(kept()["4060c7"])
    wrong = Divergence("", "", (), (), None, ("rest", "unreported"))
    return direct_test(Simple.alone, trace.scope, trace.contract, trace.commands, (), wrong, "4060c7_alone")


@pytest.mark.skipif(release() < (0, 25), reason="the target drives 0.25 and later")
def test_it_fails_as_it_did_where_no_kvproof_is_and_passes_without_what_brings_it_about(tmp_path: Path) -> None:
    (tmp_path / "blocked.py").write_text(BLOCKED)
    for identifier, offending in CAUSES.items():
        text = written(identifier)
        (tmp_path / f"test_{identifier}.py").write_text(text)
        without = re.sub(rf".*{re.escape(offending)}.*\n", "", text)
        assert without.count("\n") == text.count("\n") - 1
        (tmp_path / f"test_{identifier}_without.py").write_text(without)
    text = of_simple()
    (tmp_path / "test_4060c7.py").write_text(text)
    (tmp_path / "test_4060c7_without.py").write_text(re.sub(r".*# \d+ drain\n", "", text))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "blocked", "-p", "no:cacheprovider", "-rA", str(tmp_path)],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    ended = re.findall(r"^(PASSED|FAILED|ERROR) (\w+)\.py::\w+(.*)", ran.stdout, re.MULTILINE)
    assert sorted(ended) == [
        ("FAILED", "test_0e3499", " - AssertionError"),
        *([("FAILED", "test_4060c7", " - assert not True")] if release() < (0, 30) else []),
        ("FAILED", "test_4060c7_without", " - assert not True"),
        ("FAILED", "test_88aff6", " - AssertionError"),
        ("PASSED", "test_0e3499_without", ""),
        *([("PASSED", "test_4060c7", "")] if release() >= (0, 30) else []),
        ("PASSED", "test_88aff6_without", ""),
    ], ran.stdout + ran.stderr


def test_what_takes_the_books_of_kvproof_to_be_seen_is_said_and_no_test() -> None:
    trace = itf.read(kept()["6b13d2"])
    wrong = Divergence("published-after-all-copied", "", (), (), None, ("published", "other"))
    with pytest.raises(Unsaid, match="no words in which 'published other' could be seen without kvproof"):
        direct_test(Offloading.alone, trace.scope, trace.contract, trace.commands, (), wrong, "6b13d2_alone")


@pytest.mark.parametrize(
    ("copies", "gone"), [(SimpleCopies("eager"), "worker_handler"), (OffloadingCopies(), "connector_worker")]
)
def test_a_place_for_the_copies_that_is_gone_is_an_error_that_names_it(copies: Copies, gone: str) -> None:
    names_it = f"is not as this target knows it, AttributeError: .*'{gone}' .*_copies.py:"
    with pytest.raises(Unreadable, match=names_it), as_known("0.32.0"):
        copies.simulate(SimpleNamespace(), Workers(1, 4, 4, 2), 0)


def test_nothing_of_it_is_of_kvproof() -> None:
    for target in (Offloading, Simple):
        compile(target.alone.driver, "driver", "exec")
        assert not re.search(r"^\s*(?:from|import) kv", target.alone.driver, re.MULTILINE)


@pytest.mark.parametrize(
    ("target", "copies"),
    [(Simple, SimpleCopies("eager")), (Simple, SimpleCopies("lazy")), (Offloading, OffloadingCopies())],
)
def test_each_obligation_can_be_seen_to_be_broken_and_to_be_kept(target: type, copies: Copies) -> None:
    vllm = Vllm.of(copies, device_blocks=4, host_blocks=4, workers=2, depth=1)

    def kept_now() -> dict[str, bool]:
        return {cause: eval(owed, {"vllm": vllm}) for cause, owed in target.alone.owed.items()}

    misread = {"misread other", "misread unwritten"}
    vllm.submit(0, "ab", 1)
    vllm.schedule()
    assert kept_now() == {cause: cause in misread for cause in target.alone.owed}
    vllm.drain()
    assert kept_now() == dict.fromkeys(target.alone.owed, True)
    vllm.submit(1, "cd", 1)
    vllm.schedule()
    for rank in vllm.workers.ranks:
        rank.compute.clear()
        rank.ran += 1
    vllm.handle_output()
    vllm.drain()
    assert {cause for cause, is_kept in kept_now().items() if not is_kept} == misread
