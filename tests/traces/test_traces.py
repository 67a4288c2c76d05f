"""The committed traces: they are the seeds' cases, and every command of each is accounted for by the machine, on
kvoffload's ledger and on its host device with real bytes."""

from collections.abc import Sequence
from multiprocessing.sharedctypes import RawValue
from pathlib import Path

import pytest
from tests.traces.write import HERE, SUFFIX, all_traces

from kvmodel import Machine
from kvproof.cli import main, single
from kvproof.job import Job
from kvproof.runner import Outcome
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import explain
from kvproof.targets.kvoffload import Host, KVOffload, Ledger
from kvproof.trace import itf
from kvproof.verdict import Verdict
from kvproof.worker import outcome

FILES = sorted(HERE.glob(f"*{SUFFIX}"))


def test_the_files_are_the_seeds_cases() -> None:
    """If this fails: python -m tests.traces.write"""
    wanted = dict(all_traces())
    assert sorted(wanted) == FILES
    assert [path.name for path, trace in wanted.items() if itf.read(path) != trace] == []


@pytest.mark.parametrize("target", [Ledger, Host])
@pytest.mark.parametrize("path", FILES, ids=[path.name.removesuffix(SUFFIX) for path in FILES])
def test_every_command_is_explained(path: Path, target: type[KVOffload]) -> None:
    trace = itf.read(path)
    assert trace.verdict is Verdict.PASSED
    machine = Machine(trace.contract, trace.scope)
    state = machine.initial()
    played = target(machine.setting)
    try:
        for number, command in enumerate(trace.commands, start=1):
            done = played.perform(command)
            explained = explain(machine, state, command, done, played.view(), exact=True)
            assert not isinstance(explained, Divergence), f"command {number}, {command}: {explained}"
            state = explained.state
    finally:
        played.close()


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs get no process of their own, which would cost most of what these tests cost; the others of `replay` do."""

    def run_jobs(jobs: Sequence[Job], **_: object) -> Outcome:
        return Outcome(tuple(outcome(job, lambda words: None, RawValue("b", 0)) for job in jobs), 0.0, None)

    monkeypatch.setattr(single, "run_jobs", run_jobs)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("path", FILES, ids=[path.name.removesuffix(SUFFIX) for path in FILES])
def test_kvproof_replay(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What anybody can do with these files."""
    commands = len(itf.read(path).commands)
    assert main(["replay", str(path)]) == 0
    assert f"{commands} commands; all accounted for." in capsys.readouterr().out
