"""The kill matrix says what is lost, and what is kept of it is what the records of the bank say."""

from dataclasses import replace

import pytest

from kvspecs.catalogue import NAMES
from tests.bugs import __main__ as command
from tests.bugs import kept, rules
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.lies import LIES
from tests.bugs.matrix import Kill, by_kind, lost, of_rules, unbroken

SOUND = Kill("ids-rewound", "connector", "conform ledger", "pinning s1", True, "ids-are-never-reused", 4, 12, 0.1)

OF_DESIGN = {
    "owners-account-for-references", "free-means-unowned", "no-double-free", "no-use-after-free",
    "reads-what-was-written", "published-after-all-copied", "failed-copies-are-never-published",
    "stale-completions-change-nothing", "dropped-jobs-publish-nothing", "pinned-is-not-evicted",
    "true-reset-serves-nothing-old", "false-reset-has-a-cause", "refused-changes-nothing",
    "no-block-stored-twice-at-once", "ids-are-never-reused", "workers-agree", "fence-before-reuse",
    "hits-are-prefix-closed", "one-copy-per-key", "false-reset-serves-nothing-old", "every-request-can-finish",
    "everything-drains", "reset-converges", "every-full-block-is-stored-or-refused",
    "work-remaining-keeps-the-engine-stepping",
}  # fmt: skip
"""The properties of section 4 of the design."""


def test_a_kill_within_its_limits_is_not_lost() -> None:
    assert list(lost([SOUND])) == []


@pytest.mark.parametrize(
    ("kill", "sentence"),
    [
        (
            SOUND._replace(killed=False, property="", commands=0),
            "ids-rewound is not caught as recorded: at pinning s1 it broke nothing",
        ),
        (
            SOUND._replace(killed=False, property="no-double-free", commands=5),
            "ids-rewound is not caught as recorded: at pinning s1 it broke no-double-free after 5 commands",
        ),
        (SOUND._replace(commands=26), "ids-rewound takes 26 commands; 25 are allowed"),
        (SOUND._replace(states=50_001), "ids-rewound takes 50001 states; 50000 are allowed"),
        (SOUND._replace(seconds=3.5), "ids-rewound takes 3.5 s of processor time; 3 are allowed"),
    ],
)
def test_what_is_lost_or_takes_too_much_is_said(kill: Kill, sentence: str) -> None:
    assert list(lost([kill])) == [sentence]


def test_a_property_that_nothing_breaks_is_named() -> None:
    """A lie of the adapter or a bug of a rule does not count: they are not bugs of kvoffload."""
    kills = [SOUND._replace(id=bug.id, property=bug.property) for bug in BANK]
    assert unbroken(kills) == []
    others = [kill for kill in kills if kill.property != "reset-converges"]
    elsewhere = SOUND._replace(id="caps-counts", property="reset-converges")
    assert unbroken([*others, elsewhere]) == ["reset-converges"]


def test_every_property_of_the_design_is_judged() -> None:
    assert set(NAMES) - OF_DESIGN == {"events-tell-what-can-be-hit", "agrees-with-the-reference"}
    assert set(NAMES) >= OF_DESIGN


def test_kinds_have_their_median() -> None:
    kills = [SOUND, SOUND._replace(seconds=0.3), SOUND._replace(seconds=0.2, killed=False), SOUND._replace(kind="pool")]
    assert list(by_kind(kills)) == [("connector", 2, 3, 0.2), ("pool", 1, 1, 0.1)]


def test_a_bug_of_a_rule_is_caught_by_explore() -> None:
    (kill,) = of_rules(["rule-reset-rewinds-job-ids"])
    assert (kill.killed, kill.engine, kill.property, kill.commands) == (True, "explore", "ids-are-never-reused", 4)


def test_a_bug_that_does_not_apply_any_more_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = replace(BY_ID["ids-rewound"], old="a line that nobody wrote")
    monkeypatch.setattr(command, "BANK", (gone,))
    assert command.main([]) == 1
    said = capsys.readouterr()
    file = gone.file
    assert said.err == f"bug ids-rewound: its old text is in {file} 0 times; it must be there once\n"
    assert said.out == ""


def test_a_kill_that_is_lost_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "BANK", (replace(BY_ID["step-leaks"], property="no-double-free"),))
    assert command.main(["step-leaks"]) == 1
    assert "step-leaks is not caught as recorded" in capsys.readouterr().err


def test_what_is_kept_is_the_whole_bank_as_recorded() -> None:
    """If this fails: python -m tests.bugs --keep"""
    exhaustive = {name: kill for (name, engine), (kill, _) in kept.read().items() if engine == kept.EXHAUSTIVE}
    for record in (*BANK, *LIES):
        kill = exhaustive[record.id]
        where = f"{record.discipline} {record.variant}"
        assert (kill.killed, kill.where, kill.property) == (True, where, record.property)
        assert kill.commands == record.commands
    for name in rules.BY_NAME:
        kill = exhaustive[name]
        assert (kill.killed, kill.property, kill.commands) == (True, *rules.recorded(name))
    assert list(lost(exhaustive.values())) == []


def test_the_page_is_made_of_what_is_kept() -> None:
    """If this fails: python -m tests.bugs --page"""
    assert f"{kept.BEGIN}\n\n{kept.tables()}\n\n{kept.END}" in kept.PAGE.read_text()
