"""An invariant more is proved like the others, where it follows; `python -m tests.proofs.one_more` adds each to all."""

import pytest
from tests.proofs.one_more import REDUNDANT, proved_with

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.invariants import invariants_of
from kvspecs.proof.obligations import INITIAL
from kvspecs.proof.proof import Selection

pytestmark = pytest.mark.proofs

FEW = Selection(actions=(INITIAL, "LoseReport"))


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_what_follows_from_the_others_is_proved_with_them(discipline: Discipline) -> None:
    extra = next(each for each in REDUNDANT if each.name == "reported-was-sent")
    before = invariants_of(discipline)
    found = list(proved_with(extra, discipline, selection=FEW))
    assert {outcome.verdict for outcome in found} == {"proved"}
    assert [o.obligation.action for o in found if o.obligation.name == extra.name] == [INITIAL, "LoseReport"]
    assert invariants_of(discipline) == before


def test_what_does_not_hold_is_not_proved() -> None:
    extra = REDUNDANT[1]._replace(formula=lambda w, s, j, x: s.lost(j, x) == s.lost(0, x))
    found = list(proved_with(extra, "pinning", selection=Selection(actions=("LoseReport",))))
    assert {str(o.obligation) for o in found if o.verdict == "counterexample"} == {f"LoseReport keeps {extra.name}"}
