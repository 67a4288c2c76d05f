"""What vLLM does becomes a log, by its connector's hooks alone, and it breaks nothing; a log that was changed does."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm")

from kvmodel import Machine
from kvmodel.contract import Contract
from kvproof.cli import main
from kvproof.obligations.walk import walk
from kvproof.scopes import parse_scope
from kvproof.targets.vllm import recording
from kvproof.targets.vllm.offloading import Offloading
from kvproof.targets.vllm.recorder import RecordedOffloadingConnector, RecordedSimpleCPUOffloadConnector
from kvproof.targets.vllm.recording import RecordingOffloadingConnector, RecordingSimpleCPUOffloadConnector
from kvproof.targets.vllm.simple import Simple


class BothOffloading(RecordedOffloadingConnector, RecordingOffloadingConnector):
    """Recorded, and with the notebook of the adapter, which drives it here with real schedulers and workers."""


class BothSimple(RecordedSimpleCPUOffloadConnector, RecordingSimpleCPUOffloadConnector):
    """The same."""


def recorded(monkeypatch: pytest.MonkeyPatch, base: Any, connector: type, path: Path, seed: int) -> None:
    """One random walk of an adapter, whose connector is recorded."""
    monkeypatch.setattr(recording, connector.__name__, connector, raising=False)
    opened: list[Any] = []

    class Recorded(base):  # type: ignore[misc]
        def extra(self, setting: Any) -> Any:
            return {**super().extra(setting), "kvproof_log": str(path)}

    Recorded.connector = connector.__name__
    machine = Machine(Contract(base.disciplines[0]), parse_scope("fuzz")[1])

    def opening() -> Any:
        opened.append(Recorded(machine.setting))
        return opened[-1]

    assert walk(opening, seed).divergence is None
    opened[0].engine.scheduler.connector.recorder.close()


CONNECTORS = [(Simple, BothSimple), (Offloading, BothOffloading)]


@pytest.mark.parametrize(("base", "connector"), CONNECTORS)
@pytest.mark.parametrize("seed", [*range(4), 10, 38])
def test_what_vllm_does_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], base: Any, connector: type,
    seed: int,
) -> None:  # fmt: skip
    path = tmp_path / "engine.log"
    recorded(monkeypatch, base, connector, path, seed)
    assert main(["validate", str(path)]) == 0
    assert "breaks what every engine owes" in capsys.readouterr().out
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["tokens_per_block"] == 2
    assert any(line.get("copies") for line in lines)


@pytest.mark.parametrize(("base", "connector"), CONNECTORS)
def test_a_request_whose_blocks_are_others_reads_what_it_must_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], base: Any, connector: type
) -> None:
    path = tmp_path / "engine.log"
    recorded(monkeypatch, base, connector, path, 10)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    parts = [part for line in lines for part in line.get("requests", {}).values() if part["start"] > 1]
    hit = next(part for part in parts if "table" in part)
    hit["table"] = hit["table"][::-1]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["validate", str(path)]) == 1
    assert "REFUTED reads-what-was-written" in capsys.readouterr().out


def test_without_the_option_nothing_is_recorded() -> None:
    assert RecordedSimpleCPUOffloadConnector.recorder is None
    machine = Machine(Contract("pinning"), parse_scope("s1")[1])

    class Plain(Simple):
        connector = "BothSimple"

    recording.BothSimple = BothSimple  # type: ignore[attr-defined]
    assert Plain(machine.setting).engine.scheduler.connector.recorder is None
