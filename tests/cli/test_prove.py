"""`kvproof prove`: screen, JSON, bad usage, and who imports the solver."""

import json
import subprocess
import sys

import pytest


def test_one_action_is_proved_in_both_disciplines(cli) -> None:
    ran = cli("prove", "--action", "FreeTwice", "--json", "report.json")
    assert ran.status == 0
    assert "pinning: PROVED for all sizes" in ran.out
    assert "fencing: PROVED for all sizes" in ran.out
    assert ran.out.count("\nFreeTwice ") == 2
    with open("report.json", encoding="utf-8") as file:
        report = json.load(file)
    assert report["verdict"] == "PROVED"
    assert {result["discipline"] for result in report["results"]} == {"pinning", "fencing"}
    assert "refused-changes-nothing" in {result["property"] for result in report["results"]}


def test_every_obligation_is_told_on_request(cli) -> None:
    arguments = ("prove", "--action", "Wake", "--discipline", "fencing", "--property", "workers-agree")
    assert "progress" not in cli(*arguments).out
    ran = cli(*arguments, "--verbose")
    assert ran.status == 0
    assert "PROVED   Wake              progress" in ran.out


def test_an_action_of_one_discipline_is_proved_there(cli) -> None:
    ran = cli("prove", "--action", "ReportForgotten")
    assert ran.status == 0
    assert "pinning:" not in ran.out


def test_a_spent_budget_is_undetermined(cli) -> None:
    ran = cli("prove", "--discipline", "pinning", "--action", "Launch", "--budget", "1ms")
    assert ran.status == 3
    assert "UNDETERMINED" in ran.out


def test_the_initial_state_is_proved_by_its_name(cli) -> None:
    ran = cli("prove", "--action", "Initial", "--discipline", "pinning", "--property", "workers-agree", "--verbose")
    assert ran.status == 0
    assert "PROVED   Initial           somebody-owes" in ran.out


def test_a_theorem_is_proved_by_its_name(cli) -> None:
    arguments = ("prove", "--property", "no-request-is-deferred-for-ever", "--discipline", "fencing")
    ran = cli(*arguments, "--json", "report.json")
    assert ran.status == 0
    assert "fencing: PROVED for all sizes   0/0 safety properties" in ran.out
    assert "liveness by ranking, if workers go on, reports arrive and the engine steps" in ran.out
    with open("report.json", encoding="utf-8") as file:
        results = json.load(file)["results"]
    assert [result["property"] for result in results] == ["no-request-is-deferred-for-ever"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--property", "nonsense"),
            "property 'nonsense' is not proved by induction; use owners-account-for-references",
        ),
        (("--action", "nonsense"), "action 'nonsense' does not exist under pinning; use Initial, Submit"),
        (("--discipline", "neither"), "discipline 'neither' does not exist; use pinning or fencing"),
        (("--scope", "s1"), "there is no flag or name --scope s1"),
    ],
)
def test_bad_usage_is_one_sentence(cli, arguments: tuple[str, ...], sentence: str) -> None:
    ran = cli("prove", *arguments)
    assert ran.status == 2
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


def test_only_prove_imports_the_solver() -> None:
    code = "import sys, kvproof.cli.check, kvproof.engines.explore, kvproof.engines.conform; print('z3' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
