"""kvproof coverage: what each engine reaches of the machine, as tables and as JSON, and what none does."""

import json
from dataclasses import replace

import pytest

from kvmodel import ACTIONS
from kvmodel.guards import GUARDS
from kvproof import plan
from kvproof.report.coverage_tables import Table, tables, text
from kvproof.rows import ROWS
from kvproof.search.modes import MODES
from kvproof.verdict import Result, Verdict

ONE_BLOCK = ("coverage", "--scope", "s1,prompts=a,device=1,aborts=no,preempts=no", "--discipline", "pinning")


@pytest.fixture(autouse=True)
def little_fuzzing(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about how it is told what engines reach."""
    rows = [replace(row, options={**row.options, "commands": 300}) if row.engine == "fuzz" else row for row in ROWS]
    monkeypatch.setattr(plan, "ROWS", tuple(rows))


def result(engine: str, **counts: int) -> Result:
    return Result(engine, "kvoffload", "pinning", "s1", None, Verdict.PROVED, 0.0, counts=counts)


def test_json_has_every_kind_by_engine(cli) -> None:
    ran = cli(*ONE_BLOCK, "--device", "ledger", "--json", "-")
    assert ran.status == 0
    report = json.loads(ran.out)
    assert (report["schema"], report["verdict"]) == (1, "PASSED")
    kinds = report["coverage"]
    assert list(kinds) == ["actions", "guard outcomes", "modes", "phases", "consecutive actions"]
    actions = kinds["actions"]["covered"]
    assert set(actions) == {kind.__name__ for kind in ACTIONS}
    assert actions["Submit"]["explore"] == actions["Submit"]["conform ledger"] == 2
    assert len(kinds["guard outcomes"]["covered"]) == 2 * len(GUARDS)
    assert set(kinds["modes"]["covered"]) == set(MODES)
    phases = kinds["phases"]["covered"]
    assert phases["Submit ABSENT"]["explore"] == 2
    assert phases["Report store LIVE copied"]["explore"] > 0
    consecutive = kinds["consecutive actions"]["covered"]
    assert consecutive["Admit > Launch"]["explore"] > 0
    assert "Launch > Submit" not in consecutive
    assert "Preempt" in kinds["actions"]["missing"]
    assert "Report" not in kinds["actions"]["missing"]
    assert "covered" in ran.err


def test_the_screen_has_a_summary_and_every_name(cli) -> None:
    ran = cli(*ONE_BLOCK, "--device", "ledger")
    assert ran.status == 0
    lines = ran.out.splitlines()
    assert lines[0].split() == ["covered", "explore", "conform", "ledger", "fuzz", "ledger", "together"]
    assert lines[1].startswith("actions ")
    assert any(line.startswith("No engine met ") and "Preempt" in line for line in lines)
    assert any(line.split()[0] == "Submit" for line in lines if line)


def test_a_part_of_the_plan_may_leave_things_out_and_says_what_stopped(cli) -> None:
    ran = cli(*ONE_BLOCK, "--device", "ledger", "--budget", "1ms")
    assert ran.status == 3
    assert "UNDETERMINED" in ran.out


def test_what_nothing_reaches_is_missing_and_what_one_reaches_is_not() -> None:
    found = tables(
        {
            "explore": [result("explore", **{"action:Submit": 2, "action:Stop": 0, "then:Submit > Admit": 1})],
            "fuzz": [result("fuzz", **{"action:Submit": 0, "action:Stop": 0, "field:tables": 3})],
        }
    )
    assert found[0] == Table("actions", {"Stop": {"explore": 0, "fuzz": 0}, "Submit": {"explore": 2, "fuzz": 0}})
    assert found[0].missing == ("Stop",)
    assert (found[0].reached("explore"), found[0].reached("fuzz")) == (1, 0)
    said = text(found, ["explore", "fuzz"]).splitlines()
    assert said[1].split() == ["actions", "1/2", "0/2", "1/2"]
    assert said[5].split() == ["consecutive", "actions", "1/1", "0/1", "1/1"]
    assert "No engine met Stop." in said
