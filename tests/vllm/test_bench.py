"""The bench of the recorder runs: what it says is about both connectors, with lines that were written."""

import re

import pytest

pytest.importorskip("vllm")

from bench import record_vllm


def test_what_recording_costs_is_said_of_both_connectors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["record_vllm.py", "30"])
    record_vllm.main()
    said = capsys.readouterr().out
    found = re.findall(r"(\w+): 30 steps, \d+ us of CPU each, recorded [+-]\d+ us: \S+%; (\d+) lines", said)
    assert [name for name, _ in found] == ["OffloadingConnector", "SimpleCPUOffloadConnector"]
    assert all(int(lines) >= 30 for _, lines in found)
