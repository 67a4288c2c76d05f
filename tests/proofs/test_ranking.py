"""Liveness by ranking: every lemma is proved, none of nothing; and a bug in an action or a lost invariant shows."""

import pytest
from tests.proofs.bugs import Alter, changing, without

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.actions import actions_of
from kvspecs.proof.logic import any_of
from kvspecs.proof.ranking import solving
from kvspecs.proof.ranking.fairness import ALL as FAIRNESS
from kvspecs.proof.ranking.theorems import THEOREMS

pytestmark = pytest.mark.proofs


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_every_lemma_is_proved(discipline: Discipline) -> None:
    outcomes = [outcome for _, outcome in solving.prove(discipline)]
    assert {outcome.verdict for outcome in outcomes} == {"proved"}
    assert {outcome.obligation.property for outcome in outcomes} == {theorem.name for theorem in THEOREMS}
    names = [(outcome.obligation.action, outcome.obligation.name) for outcome in outcomes]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_no_lemma_assumes_what_cannot_be(discipline: Discipline) -> None:
    for proof in solving.proofs(discipline):
        assert proof.is_satisfiable(), proof.lemma.name


def test_the_fairness_that_is_assumed_is_of_actions_that_there_are() -> None:
    names = {action.name for action in actions_of("fencing")}
    assert all(set(fairness.actions) <= names for fairness in FAIRNESS)
    assert [fairness.name for fairness in FAIRNESS] == ["workers-go-on", "reports-arrive", "the-engine-steps"]


BUGS: tuple[tuple[str, str, Alter, str], ...] = (
    (
        "a compute that has run runs again",
        "Wake",
        changing(ran=lambda w, s, p, t: lambda g, x: False),
        "no-older-compute",
    ),
    (
        "a report is taken back",
        "HandleOutput",
        changing(reported=lambda w, s, p, t: lambda j, x: False),
        "stays-launched, what-is-reported-stays-so",
    ),
    (
        "a launch makes older copies wait for it",
        "Launch",
        changing(waits_for_step=lambda w, s, p, t: lambda j: p.g, in_steps=lambda w, s, p, t: lambda g: True),
        "a-store-may-still-run, waits-for-compute",
    ),
    (
        "a report that is lost is lost for everybody",
        "LoseReport",
        changing(lost=lambda w, s, p, t: lambda j, x: any_of(s.lost(j, x), x == p.v)),
        "only-its-own-is-lost",
    ),
    (
        "another output is awaited each time",
        "Wake",
        changing(awaited=lambda w, s, p, t: lambda: s.awaited() + 1),
        "same-output-is-awaited",
    ),
    (
        "a launch leaves queued loads where they are",
        "Launch",
        changing(sent=lambda w, s, p, t: s.sent),
        "load-is-launched",
    ),
    (
        "a store in a drain is queued anew",
        "RunStore",
        changing(sent=lambda w, s, p, t: lambda j: True),
        "nothing-takes-off",
    ),
    ("a reset leaves jobs live", "Reset", changing(view=lambda w, s, p, t: s.view), "nothing-stays-live"),
    ("a store is made for whoever waits", "Launch", without("owner-runs"), "waits-for-no-other"),
    ("a copy is not noted", "RunLoad", changing(copied=lambda w, s, p, t: s.copied), "copy-is-done"),
)


@pytest.mark.parametrize(("name", "action", "alter", "fails"), BUGS, ids=[bug[0] for bug in BUGS])
def test_a_bug_fails_the_lemma_that_is_named_for_it(name: str, action: str, alter: Alter, fails: str) -> None:
    found = next(a for a in actions_of("fencing") if a.name == action)
    lemmas = [lemma for lemma in solving.LEMMAS if lemma.concerns(found)]
    failed = [
        outcome.obligation.name
        for lemma in lemmas
        for outcome in solving.Proof("fencing", lemma, found, alter).prove()
        if outcome.verdict == "counterexample"
    ]
    assert fails in failed


NEEDED = (
    ("steps-in-order", "a-load-may-run"),
    ("copies-in-order", "a-store-may-run"),
    ("copy-after-copy", "a-load-may-run"),
    ("copy-after-step", "a-store-may-run"),
    ("step-after-copy", "a-compute-may-run"),
    ("somebody-owes", "somebody-copies-or-reports"),
    ("awaited-job", "its-job-is-on-its-way"),
)


@pytest.mark.parametrize(("invariant", "lemma"), NEEDED)
def test_without_an_invariant_a_lemma_fails(invariant: str, lemma: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody might wait in a circle, or a job stay that nobody has anything more to say of."""
    monkeypatch.setattr(solving, "RELIED_ON", solving.RELIED_ON - {invariant})
    proof = next(p for p in solving.proofs("fencing") if p.lemma.name == lemma)
    assert "counterexample" in {outcome.verdict for outcome in proof.prove()}
