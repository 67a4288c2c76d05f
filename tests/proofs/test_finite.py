"""Finite scope: every action can happen where the invariants hold, and what is proved for all sizes holds here too."""

import pytest

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.actions import actions_of
from kvspecs.proof.finite import FiniteInduction, judged

pytestmark = pytest.mark.proofs

FEW = {"D": 2, "H": 1, "R": 2, "W": 2, "K": 2, "J": 2, "S": 1}
"""Sizes at which a solver answers soon."""

PAIRS = [(DISCIPLINES[index % 2], action.name) for index, action in enumerate(actions_of("pinning"))]
PAIRS += [("fencing", "ReportForgotten"), ("fencing", "AbortDraining")]
"""Each action in one of its disciplines; that of the other differs little."""


@pytest.mark.parametrize(("discipline", "name"), PAIRS)
def test_no_action_is_vacuous(discipline: Discipline, name: str) -> None:
    action = next(action for action in actions_of(discipline) if action.name == name)
    assert FiniteInduction(discipline, action, sizes=FEW).can_happen() is not None


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_obligations_hold_at_the_finite_scope(discipline: Discipline) -> None:
    for action, obligation in (("Launch", "store-reads"), ("Reset", "host-owned")):
        assert [outcome.verdict for outcome in judged(discipline, action, obligation)] == ["proved"]


def test_whole_actions_hold_at_the_finite_scope() -> None:
    action = next(action for action in actions_of("fencing") if action.name == "CompleteAbandoned")
    assert {outcome.verdict for outcome in FiniteInduction("fencing", action, sizes=FEW).prove()} == {"proved"}
