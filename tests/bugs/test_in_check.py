"""What `kvproof check` was seen to catch, by mode."""

import pytest

from kvproof.rows import ROWS
from tests.bugs import in_check
from tests.bugs.bank import BANK, BY_ID


def test_each_bug_is_caught_by_a_row_that_takes_every_step_of_its_scopes() -> None:
    """If this fails: python -m tests.bugs.in_check"""
    exhaustive = {row.title for row in ROWS if row.exhaustive}
    assert {"fuzz", "soak host"}.isdisjoint(exhaustive)
    known = in_check.kept()
    assert [bug.id for bug in BANK if bug.id not in known or known[bug.id].row not in exhaustive] == []


def test_a_mode_without_its_bugs_is_named() -> None:
    known = {name: one for name, one in in_check.kept().items() if "window" not in in_check.modes_of(BY_ID[name])}
    assert "window has 0 bugs that check was seen to catch; 3 are wanted" in list(in_check.lacking(known))
    assert not any(said.startswith("tiers") for said in in_check.lacking(known))


def test_a_bug_that_check_does_not_catch_does_not_count() -> None:
    missed = {name: one._replace(row="") for name, one in in_check.kept().items()}
    assert not any(in_check.by_mode(missed).values())


def test_the_job_with_the_bugs_own_variant_is_asked_first() -> None:
    caught = in_check.caught_by(BY_ID["double-free-loses-the-block"])
    assert caught[1:5] == ("conform modes", "pinning s1+double-frees", "free-means-unowned", 1)


def test_of_what_is_given_up_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[in_check.Caught] = []
    monkeypatch.setattr(in_check, "LIMIT", 0.01)
    monkeypatch.setattr(in_check, "keep", kept.append)
    monkeypatch.setattr(in_check, "write_readme", lambda: None)
    assert in_check.main(["step-leaks"]) == 1
    assert kept == []
    assert "step-leaks                         no answer within 0 s" in capsys.readouterr().out


def test_the_table_of_modes_is_made_of_what_is_kept() -> None:
    """If this fails: python -m tests.bugs.in_check --readme"""
    wanted = "\n".join(in_check.table(in_check.kept()))
    assert f"{in_check.BEGIN}\n\n{wanted}\n\n{in_check.END}" in in_check.README.read_text()
    assert in_check.kept().keys() <= {bug.id for bug in BANK}


def test_of_each_mode_three_bugs_are_caught_by_check() -> None:
    """If this fails: python -m tests.bugs.in_check --mode MODE"""
    assert list(in_check.lacking(in_check.kept())) == []
