"""States that the solver draws are states of the machine, and the machine takes the specification's step from them."""

from collections import Counter

import pytest
from tests.proofs.drawn import disagreements, draw

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.action import Effect
from kvspecs.proof.actions import actions_of

pytestmark = pytest.mark.proofs

SOME = ("Launch", "HandleOutput")


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("name", SOME)
def test_the_machine_takes_the_same_step(discipline: Discipline, name: str) -> None:
    action = next(action for action in actions_of(discipline) if action.name == name)
    drawn = draw(discipline, action, 1)
    assert len(drawn) == 1
    assert disagreements(discipline, drawn) == Counter()


def test_a_planted_mismatch_is_found() -> None:
    def leaks(name: str, w: object, s: object, p: object, effect: Effect) -> Effect:
        return effect.then(device_refs=lambda d: effect.after.device_refs(d) + 1)

    action = next(action for action in actions_of("pinning") if action.name == "Finish")
    assert "Finish: device_refs" in disagreements("pinning", draw("pinning", action, 1), leaks)
