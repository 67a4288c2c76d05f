"""A counterexample to induction tells which request, block and job; and of them nothing that means nothing."""

from tests.proofs.bugs import BUGS, action_of

from kvspecs.proof import counterexample
from kvspecs.proof.parametric import Induction


def told(name: str) -> list[str]:
    """What is told of a seeded bug under pinning."""
    bug = next(bug for bug in BUGS if bug.name == name)
    induction = Induction("pinning", action_of(bug, "pinning"), bug.alter)
    [outcome] = induction.prove(lambda obligation: obligation.name == bug.fails)
    return counterexample.told(outcome.model, induction, outcome.obligation)


def rows(lines: list[str], table: str) -> list[str]:
    """What is told of the table whose line begins so; it may be nothing."""
    found, inside = [], False
    for line in lines:
        if line.startswith("    "):
            found += [line.strip()] if inside else []
        else:
            inside = line.startswith(f"  {table} (")
    return found


def test_it_tells_what_an_action_makes_of_which_request_and_block() -> None:
    lines = told("grow-keeps-key")
    assert lines[0] == "Grow keeps cached-as-it-stands fails for request 0, d0"
    assert lines[1] == "  Grow with r request 0"
    assert "request 0 d0: False -> True" in rows(lines, "table")
    assert "d0: 0 -> 1" in rows(lines, "device refs")


def test_a_block_stands_for_a_key_in_the_tables_that_have_it_alone() -> None:
    lines = told("grow-keeps-key")
    held = {row.partition(":")[0] for row in rows(lines, "table")}
    assert "request 0 d0" in held
    assert {row.partition(":")[0] for row in rows(lines, "stands for")} == held


def test_nothing_is_told_of_jobs_that_are_gone() -> None:
    lines = told("completion-counted-twice")
    here = {row.partition(":")[0] for row in rows(lines, "view")}
    assert here
    assert {row.partition(":")[0] for row in rows(lines, "sent")} <= here
