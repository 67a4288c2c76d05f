"""Modes that take turns: few combinations, in which every value of a mode meets every value of another one."""

from itertools import combinations

import pytest

from kvmodel import Contract
from kvproof.search.modes import turns

MODES = ("store_mode", "output_from", "depth", "admission", "reports", "deadline")


@pytest.mark.parametrize(("first", "contracts", "pairs"), [(4, 4, 54), (8, 8, 60)])
def test_eight_turns_have_every_pair_of_values(first: int, contracts: int, pairs: int) -> None:
    taken = turns(Contract("pinning"))[:first]
    met = {
        (one, getattr(turn, one), other, getattr(turn, other))
        for turn in taken
        for one, other in combinations(MODES, 2)
    }
    assert (len(set(taken)), len(met)) == (contracts, pairs)


def test_there_are_no_more_turns_than_that() -> None:
    assert len(turns(Contract("fencing"))) == 8
