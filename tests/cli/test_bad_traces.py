"""`kvproof replay` and `shrink` on files that are no traces."""

import json
from pathlib import Path

import pytest

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.targets.command import Command
from kvproof.trace import itf
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

TRACE = Trace(
    Contract("pinning"), Scope(2, 1, 1, ("ab",)), "s1", "kvoffload", (Command("submit", (0,)),), Verdict.PASSED
)
GOOD = itf.to_text(TRACE)
A_MILLION = json.dumps({**json.loads(GOOD), "states": []}).replace(
    '"states": []', '"states": [' + '{"command": {"verb": "launch"}}, ' * 999_999 + '{"command": {"verb": "launch"}}]'
)


@pytest.mark.parametrize("verb", ["replay", "shrink"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD[: len(GOOD) // 2], "ends in the middle (was it cut off?)"),
        ("", "is empty"),
        ("what happened:\n  submit x\n", "is not JSON"),
        ("[" * 1_000_000, "is nested 1,000,000 deep"),
        (GOOD.replace('"schema": 1', '"schema": 2'), "has schema 2, and this kvproof reads up to 1; upgrade kvproof"),
        (GOOD.replace('"submit"', '"teleport"'), "has an unknown action 'teleport' in state 1"),
        (A_MILLION, "bytes, and at most 16,777,216 are read"),
    ],
    ids=["truncated", "empty", "not JSON", "very deep", "newer schema", "unknown action", "a million actions"],
)
def test_one_sentence(folder: Path, cli, verb: str, content: str, words: str) -> None:
    (folder / "t.itf.json").write_text(content)
    ran = cli(verb, "t.itf.json", "--json", "report.json")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("kvproof: trace t.itf.json ")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["t.itf.json"]


@pytest.mark.parametrize("target", ["evil.py:Engine", "evil:Engine"])
def test_a_trace_does_not_choose_which_code_runs(folder: Path, cli, target: str) -> None:
    (folder / "evil.py").write_text("open('ran', 'w').close()\nclass Engine: pass\n")
    itf.write(folder / "t.itf.json", Trace(**{**TRACE.__dict__, "target": target}))
    ran = cli("replay", "t.itf.json")
    assert (ran.status, ran.out) == (2, "")
    assert f"add --target {target}" in ran.err
    assert not (folder / "ran").exists()
