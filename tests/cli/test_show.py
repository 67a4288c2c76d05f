"""`kvproof show` on files, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TRACES = Path(__file__).parents[1] / "traces"
TRACE = TRACES / "a_live_request_is_scheduled_again_after_a_reset-fencing.trace.itf.json"


def show(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kvproof", "show", *words], capture_output=True, text=True, timeout=120, check=False
    )


def test_the_table_of_a_trace_that_passes() -> None:
    done = show(str(TRACE))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kvoffload on ledger, fencing, ")
    assert "reset invalidate" in done.stdout
    assert "x: RUNNING" in done.stdout


def test_the_page_is_written_whole_and_json_beside_it(tmp_path: Path) -> None:
    page, report = tmp_path / "t.html", tmp_path / "r.json"
    done = show(str(TRACE), "--html", str(page), "--json", str(report))
    assert done.returncode == 0, done.stderr
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(report.read_text(encoding="utf-8"))["verdict"] == "PASSED"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["r.json", "t.html"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing-here"], "trace 'nothing-here' does not exist"),
        ([str(TRACE), "--only", "d0,d9"], "--only names 'd9', which is not in the trace; there is x, d0"),
        ([str(TRACE), "--mermaid", "--only", "d0"], "--mermaid shows the whole trace; leave out --only"),
        (
            [str(TRACE), "--html", "/nowhere/t.html"],
            "page '/nowhere/t.html' cannot be written; name a file in a folder",
        ),
    ],
)
def test_bad_usage_is_one_sentence(words: list[str], sentence: str) -> None:
    done = show(*words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"kvproof: {sentence}")
    assert done.stdout == ""
