"""`kvproof prove`: screen, JSON, bad usage, and who imports the solver."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kvspecs


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
        (("--solver", "nonsense"), "solver 'nonsense' does not exist; use z3 or cvc5"),
        (("--discipline", "neither"), "discipline 'neither' does not exist; use pinning or fencing"),
        (("--scope", "s1"), "there is no flag or name --scope s1"),
        (
            ("--action", "FreeTwice", "--property", "false-reset-has-a-cause"),
            "no obligation of FreeTwice is about false-reset-has-a-cause; leave out one of the two",
        ),
        (
            ("--action", "Initial", "--property", "no-request-is-deferred-for-ever"),
            "no obligation of Initial is about no-request-is-deferred-for-ever; leave out one of the two",
        ),
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


def without(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package were not installed."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == module else found(name, *rest))


def test_without_cvc5_it_says_how_to_get_it(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    without("cvc5", monkeypatch)
    ran = cli("prove", "--solver", "cvc5")
    assert ran.status == 2
    assert ran.err == ("kvproof: --solver cvc5 needs cvc5, which is not installed; install kvproof[cvc5]\n")


def need_cvc5(required: bool) -> None:
    """Skip without it, or fail where it must be there, as in CI."""
    if importlib.util.find_spec("cvc5") is not None:
        return
    if required:
        pytest.fail("KVPROOF_REQUIRE_CVC5 is set, and there is no cvc5 (pip install kvproof[cvc5])")
    pytest.skip("cvc5 is not installed here (pip install kvproof[cvc5])")


@pytest.fixture
def cvc5() -> None:
    need_cvc5(bool(os.environ.get("KVPROOF_REQUIRE_CVC5")))


needs_cvc5 = pytest.mark.usefixtures("cvc5")


def test_without_cvc5_its_tests_are_skipped_at_the_desk_and_fail_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without("cvc5", monkeypatch)
    with pytest.raises(pytest.skip.Exception, match="cvc5 is not installed here"):
        need_cvc5(required=False)
    with pytest.raises(pytest.fail.Exception, match="KVPROOF_REQUIRE_CVC5 is set, and there is no cvc5"):
        need_cvc5(required=True)


@needs_cvc5
def test_cvc5_proves_the_obligations_of_an_action_and_its_lemmas(cli) -> None:
    ran = cli("prove", "--solver", "cvc5", "--action", "Wake", "--discipline", "pinning")
    assert ran.status == 0
    assert "prove, all sizes   cvc5" in ran.out
    assert "pinning: PROVED for all sizes   13/13 safety properties, 119/119 obligations" in ran.out
    assert "      no-request-is-deferred-for-ever       1 obligations" in ran.out


@needs_cvc5
def test_cvc5_proves_those_of_the_initial_state(cli) -> None:
    ran = cli("prove", "--solver", "cvc5", "--action", "Initial", "--discipline", "fencing")
    assert ran.status == 0
    assert "fencing: PROVED for all sizes   12/12 safety properties, 89/89 obligations" in ran.out


def test_without_z3_it_says_what_is_missing(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    without("z3", monkeypatch)
    ran = cli("prove")
    assert ran.status == 2
    assert ran.err == (
        "kvproof: prove needs z3-solver, which is not installed; install kvproof with its dependencies\n"
    )


def ran_with(folder: Path, file: str, right: str, wrong: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`kvproof prove` in a process of its own, with a line of the specification or its prover replaced."""
    specs = Path(kvspecs.__file__).parent
    shutil.copytree(specs, folder / "kvspecs", ignore=shutil.ignore_patterns("__pycache__"))
    changed = folder / "kvspecs" / "proof" / file
    text = changed.read_text(encoding="utf-8")
    assert text.count(right) == 1
    changed.write_text(text.replace(right, wrong), encoding="utf-8")
    path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))
    return subprocess.run(
        [sys.executable, "-m", "kvproof", "prove", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


def test_a_counterexample_is_told_and_its_status_is_four(tmp_path: Path) -> None:
    """A compute that runs before an older one on the same worker."""
    ran = ran_with(
        tmp_path,
        "actions/workers.py",
        'Clause("oldest-of-stream", "S", lambda x: implies(computing(s, x, v), g <= x))',
        'Clause("oldest-of-stream", "S", lambda x: True)',
        *("--action", "RunCompute", "--discipline", "pinning", "--property", "fence-before-reuse"),
    )
    assert ran.returncode == 4
    assert "pinning: COUNTEREXAMPLE_TO_INDUCTION" in ran.stdout
    assert "RunCompute keeps compute-order fails for step " in ran.stdout
    assert "  RunCompute with g step " in ran.stdout
    assert "  ran (a worker has run its compute)\n" in ran.stdout
    assert ": False -> True\n" in ran.stdout
    assert "Finite-scope induction confirms it" in ran.stdout


def test_what_the_solver_gives_up_on_is_undetermined_and_named(tmp_path: Path) -> None:
    """It is given a unit of its own resources in place of a time: how fast this machine is does not matter."""
    ran = ran_with(
        tmp_path,
        "questions.py",
        'solver.set("timeout", TIMEOUT_MS)',
        'solver.set("rlimit", 1)',
        *("--action", "Admit", "--discipline", "pinning", "--property", "owners-account-for-references"),
    )
    assert ran.returncode == 3
    assert "pinning: UNDETERMINED" in ran.stdout
    assert "solver gave up on Admit keeps device-owned, Admit keeps host-owned\n" in ran.stdout


@needs_cvc5
def test_cvc5_does_not_prove_what_is_wrong(tmp_path: Path) -> None:
    """A compute that runs before an older one on the same worker."""
    ran = ran_with(
        tmp_path,
        "actions/workers.py",
        'Clause("oldest-of-stream", "S", lambda x: implies(computing(s, x, v), g <= x))',
        'Clause("oldest-of-stream", "S", lambda x: True)',
        *("--action", "RunCompute", "--discipline", "pinning", "--property", "fence-before-reuse", "--solver", "cvc5"),
    )
    assert ran.returncode == 4
    assert "RunCompute keeps compute-order: cvc5 finds a counterexample; ask z3 to be told it" in ran.stdout


@needs_cvc5
def test_what_cvc5_gives_up_on_is_undetermined_and_named(tmp_path: Path) -> None:
    ran = ran_with(
        tmp_path,
        "second_opinion.py",
        "LIMIT = 10_000_000\n",
        "LIMIT = 1\n",
        *("--action", "Admit", "--discipline", "pinning", "--property", "owners-account-for-references"),
        *("--solver", "cvc5"),
    )
    assert ran.returncode == 3
    assert "solver gave up on Admit keeps device-owned, Admit keeps host-owned\n" in ran.stdout
