"""What a target does becomes a log that the contract explains, with the runs of operations in it or without."""

import json
import random
from pathlib import Path

import pytest

from kvmodel import Machine
from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvproof.cli import main
from kvproof.log.recorder import Recorder
from kvproof.scopes import parse_scope
from kvproof.targets.command import Command
from kvproof.targets.explain import Explained, explain
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.wording import command_of
from tests.log.a_log import LINES, lines, written
from tests.log.test_follow import followed

SEEN_ONLY_IN_A_MACHINE = (
    "duplicate_report", "lose_report", "forge_report", "free_twice", "fail_copy", "fail_block",
)  # fmt: skip


def recorded(path: Path, discipline: Discipline, seed: int, *, runs: bool) -> int:
    """A log of kvoffload, driven at random until all of its requests have ended. Lines written (count)."""
    machine = Machine(Contract(discipline), parse_scope("fuzz")[1])
    target = Ledger(machine.setting)
    chance = random.Random(seed)
    state = machine.initial()
    lines = 0
    with Recorder(path, machine.setting, "kvoffload", runs=runs) as recorder:
        while True:
            commands = [command_of(action) for action in machine.actions(state)]
            commands = [command for command in commands if command.verb not in SEEN_ONLY_IN_A_MACHINE]
            if not commands:
                return lines
            commands.append(Command("schedule"))
            weights = [0.1 if command.verb in ("abort", "preempt", "reset") else 1.0 for command in commands]
            (command,) = chance.choices(commands, weights)
            outcome = recorder.performed(target, command)
            lines += runs or command.verb != "run"
            explained = explain(machine, state, command, outcome, target.view(), exact=True)
            assert isinstance(explained, Explained)
            state = explained.state


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("seed", range(5))
def test_all_that_kvoffload_does_is_explained(tmp_path: Path, discipline: Discipline, seed: int, runs: bool) -> None:
    path = tmp_path / "engine.log"
    written_lines = recorded(path, discipline, seed, runs=runs)
    assert written_lines > 60
    follower, stuck, explained = followed(path)
    assert stuck is None
    assert explained == written_lines
    assert bool(follower.inferred) is not runs


def test_the_verb_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, lines())
    assert main(["validate", str(path)]) == 0
    assert "all 8 lines explained, 4 runs inferred." in capsys.readouterr().out


def test_the_verb_refutes_with_exit_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    changed = lines()
    changed[4]["answered"] = True
    path = written(tmp_path, changed)
    assert main(["validate", str(path), "--json", str(tmp_path / "said.json")]) == 1
    said = capsys.readouterr().out
    assert "REFUTED true-reset-serves-nothing-old   line 6, after 4 that are explained" in said
    (result,) = json.loads((tmp_path / "said.json").read_text())["results"]
    assert (result["verdict"], result["property"]) == ("REFUTED", "true-reset-serves-nothing-old")


def test_a_recorder_overwrites_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, list(LINES))
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        Recorder(path, Machine(Contract("pinning"), parse_scope("s1")[1]).setting, "kvoffload")
    assert path.read_bytes() == before
