"""What is kept of a failure of vLLM has a test that needs no kvproof: it fails as the target did, and passes without
the command that brings it about."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("vllm")

from tests.vllm.by_hand import release
from tests.vllm.versions import kept

from kvmodel import Contract, Machine
from kvmodel.scope import Scope
from kvproof.engines.run_of import failure_of, run_of
from kvproof.engines.verdict_of import verdict_of
from kvproof.job import Job
from kvproof.obligations import accounts
from kvproof.obligations.accounts import held
from kvproof.obligations.books import Unreadable
from kvproof.obligations.workers import Workers
from kvproof.search.modes import Variant
from kvproof.targets.alone import direct_test
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.open_for import opener
from kvproof.targets.vllm.driver import Copies, Vllm
from kvproof.targets.vllm.known import as_known
from kvproof.targets.vllm.offloading import Offloading
from kvproof.targets.vllm.offloading_copies import OffloadingCopies
from kvproof.targets.vllm.simple import Simple
from kvproof.targets.vllm.simple_copies import SimpleCopies
from kvproof.targets.vllm.target import ConnectorTarget
from kvproof.trace import itf
from kvproof.verdict import Verdict

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("kvproof", "kvmodel", "kvspecs", "kvoffload"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
"""

mended = pytest.mark.skipif(release() < (0, 30), reason="4060c7 or PR 48102 would be in its way")

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


def without_kvproof(folder: Path) -> str:
    """What pytest says of the tests in this folder, where kvproof cannot be imported."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]  # which may have another release of vLLM
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "blocked", "-p", "no:cacheprovider", "-rA", str(folder)],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(paths)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr


def ended_in(folder: Path) -> list[tuple[str, str]]:
    """How each test in this folder ends there."""
    said = without_kvproof(folder)
    ended: list[tuple[str, str]] = re.findall(r"^(PASSED|FAILED|ERROR) (\w+)\.py::", said, re.MULTILINE)
    assert ended, said
    return sorted(ended)


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
    ran = without_kvproof(tmp_path)
    ended = re.findall(r"^(PASSED|FAILED|ERROR) (\w+)\.py::\w+(.*)", ran, re.MULTILINE)
    assert sorted(ended) == [
        ("FAILED", "test_0e3499", " - AssertionError"),
        *([("FAILED", "test_4060c7", " - assert not True")] if release() < (0, 30) else []),
        ("FAILED", "test_4060c7_without", " - assert not True"),
        ("FAILED", "test_88aff6", " - AssertionError"),
        ("PASSED", "test_0e3499_without", ""),
        *([("PASSED", "test_4060c7", "")] if release() >= (0, 30) else []),
        ("PASSED", "test_88aff6_without", ""),
    ], ran


@pytest.mark.parametrize("target", [Simple, Offloading])
def test_whatever_a_target_can_be_given_can_be_given_without_kvproof(target: type[ConnectorTarget]) -> None:
    assert target.alone.calls.keys() == target.verbs


LOSING = tuple(
    Command(verb, tuple(args))
    for verb, *args in (
        ("submit", 0),
        ("schedule",),
        ("run", 0, "compute"),
        ("handle_output",),
        ("schedule",),
        ("run", 0, "store"),
        ("lose_report", 0, 0),
        ("drain",),
    )
)
"""A worker that never reports its store."""


@mended
def test_a_fault_beyond_the_contract_is_brought_about_without_kvproof_too(tmp_path: Path) -> None:
    machine = Machine(Contract("pinning"), Scope(3, 2, 1, ("ab",)))
    run = run_of(machine, opener("vllm-simple", "", machine), LOSING, lambda: False)
    assert run.divergence is not None
    assert (run.divergence.property, run.divergence.cause) == ("everything-drains", ("hang", "engine"))
    variant = Variant("s1", machine.setting.scope, machine.setting.contract)
    failure = failure_of(variant, "vllm-simple", "fuzz", "", LOSING, run.divergence, run.notes, "")
    job = Job("fuzz", "vllm-simple", "pinning", "s1", machine.setting.scope, machine.setting.contract)
    verdict, beyond = verdict_of(job, failure)
    assert verdict is Verdict.FRAGILE
    assert f"def test_{beyond.fingerprint}_alone" in beyond.alone
    (tmp_path / "blocked.py").write_text(BLOCKED)
    (tmp_path / "test_lost.py").write_text(beyond.alone)
    (tmp_path / "test_told.py").write_text(re.sub(r".*# 7 lose .*\n", "", beyond.alone))
    assert ended_in(tmp_path) == [("FAILED", "test_lost"), ("PASSED", "test_told")]


STRICTLY = (
    Command("submit", (1,)),
    Command("schedule"),
    Command("reset", ("invalidate", "keep")),
    Command("submit", (0,)),
    Command("drain"),
)
"""Read strictly, the False of this reset is no reason to go on serving what was computed before it."""


@mended
def test_what_a_reset_promises_when_its_false_is_read_strictly_is_asked_without_kvproof_too(tmp_path: Path) -> None:
    machine = Machine(Contract("fencing", depth=2), Scope(2, 1, 1, ("ab", "a"), resets=1, survivors=True))
    run = run_of(machine, opener("vllm-offloading", "", machine, "strict"), STRICTLY, lambda: False)
    assert run.divergence is not None
    assert (run.divergence.property, run.divergence.cause) == ("false-reset-serves-nothing-old", ("misread", "old"))
    variant = Variant("s1", machine.setting.scope, machine.setting.contract)
    text = failure_of(variant, "vllm-offloading", "fuzz", "", STRICTLY, run.divergence, run.notes, "").alone
    (tmp_path / "blocked.py").write_text(BLOCKED)
    (tmp_path / "test_strict.py").write_text(text)
    (tmp_path / "test_lenient.py").write_text(text.replace(", strict=True)  # 3", ")  # 3"))
    assert ended_in(tmp_path) == [("FAILED", "test_strict"), ("PASSED", "test_lenient")]


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


@mended
@pytest.mark.parametrize(
    ("target", "copies"),
    [(Simple, SimpleCopies("eager")), (Simple, SimpleCopies("lazy")), (Offloading, OffloadingCopies())],
)
def test_each_obligation_can_be_seen_to_be_broken_and_to_be_kept(target: type, copies: Copies) -> None:
    vllm = Vllm.of(copies, device_blocks=4, host_blocks=4, workers=2, depth=1)

    def kept_now() -> dict[str, bool]:
        return {cause: eval(owed, {"vllm": vllm, "held": held}) for cause, owed in target.alone.owed.items()}

    misread = {"misread"}
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


def device_block_is_counted_twice(vllm: Vllm) -> None:
    vllm.scheduler.kv_cache_manager.block_pool.blocks[1].ref_cnt += 1


def host_block_is_free_and_held(vllm: Vllm) -> None:
    connector = vllm.scheduler.connector
    if isinstance(vllm.copies, SimpleCopies):
        connector.scheduler_manager.cpu_block_pool.blocks[1].ref_cnt += 1
    else:
        connector.connector_scheduler.manager._free_list.append(0)


def request_runs_on_a_block_that_is_not_its_own(vllm: Vllm) -> None:
    vllm.submit(1, "c", 0)
    vllm.schedule()
    ((_, (block,)),) = vllm.holders()
    vllm.scheduler.kv_cache_manager.block_pool.blocks[block].ref_cnt = 0


def copy_reads_what_nobody_owns(vllm: Vllm) -> None:
    vllm.workers.submit(0, 99, "store", [(1, 0)], waits_for_compute=False)


def host_block_is_overwritten(vllm: Vllm) -> None:
    (block, _), *_ = vllm.host()[1]
    vllm.workers.ranks[1].host[block] = [0, 0]


@mended
@pytest.mark.parametrize(("target", "copies"), [(Simple, SimpleCopies("eager")), (Offloading, OffloadingCopies())])
def test_what_must_always_hold_is_seen_to_be_broken(target: type, copies: Copies) -> None:
    def broken_by(change: Callable[[Vllm], None]) -> set[str]:
        vllm = Vllm.of(copies, device_blocks=2, host_blocks=2, workers=2, depth=1)
        vllm.submit(0, "ab", 0)
        vllm.drain()
        change(vllm)
        names = {**vars(accounts), "vllm": vllm}
        return {cause for cause, kept in target.alone.always.items() if not eval(kept, names)}

    assert broken_by(lambda vllm: None) == set()
    assert broken_by(device_block_is_counted_twice) == {"pool device"}
    assert broken_by(host_block_is_free_and_held) == {"pool host"}
    assert broken_by(request_runs_on_a_block_that_is_not_its_own) == {"pool device", "owners device"}
    assert broken_by(copy_reads_what_nobody_owns) == {"unowned"}
    assert broken_by(host_block_is_overwritten) == {"published"}
    assert broken_by(lambda vllm: vllm.workers.weights_change()) == {"published"}


def test_a_drain_ends_where_what_must_hold_does_not() -> None:
    vllm = Vllm.of(OffloadingCopies(), device_blocks=2, host_blocks=2, workers=1, depth=1)
    vllm.submit(0, "ab", 0)
    vllm.drain(lambda: not vllm.workers.ranks[0].ran)
    assert (vllm.workers.ranks[0].ran, vllm.rests()) == (1, False)
    vllm.drain()
    assert vllm.rests()
