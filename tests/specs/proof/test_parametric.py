"""Parametric induction: a few actions are proved here; `kvproof prove` proves all of them."""

import pytest

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.catalogue import SAFETY
from kvspecs.proof.action import Effect, Parameters
from kvspecs.proof.actions import actions_of
from kvspecs.proof.obligations import properties
from kvspecs.proof.parametric import Induction
from kvspecs.proof.proof import Selection, prove
from kvspecs.proof.state import State, Vocabulary

pytestmark = pytest.mark.proofs


def test_every_safety_property_is_served() -> None:
    assert set(properties()) == {p.name for p in SAFETY}


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_light_actions_are_proved(discipline: Discipline) -> None:
    names = ("Grow", "ReportPart", "Finish", "Wake", "FreeTwice")
    outcomes = [outcome for _, outcome in prove(discipline, Selection(actions=names))]
    assert {outcome.obligation.action for outcome in outcomes} == set(names)
    assert {outcome.verdict for outcome in outcomes} == {"proved"}
    assert sum(outcome.instances > 0 for outcome in outcomes) > 60  # the others are not touched by the action


def test_a_bug_fails_its_own_obligation() -> None:
    """Grow that takes blocks in use: they are not free, and so somebody else's."""

    def takes_anything(w: Vocabulary, s: State, p: Parameters, effect: Effect) -> Effect:
        return Effect(
            guard=tuple(clause for clause in effect.guard if clause.name != "fresh-is-free"),
            after=effect.after,
            promises=effect.promises,
            changed=effect.changed,
            unions=effect.unions,
        )

    grow = next(action for action in actions_of("pinning") if action.name == "Grow")
    failed = {o.obligation.name for o in Induction("pinning", grow, takes_anything).prove() if o.verdict != "proved"}
    assert {"device-owned", "pinned-device-key-stays", "one-key-for-a-block"} <= failed
