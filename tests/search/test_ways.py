"""The kept ways of s3: those of pinning are found afresh here, in seconds; those of fencing in `check --all` alone."""

from kvmodel import Contract, Machine
from kvproof.scopes import SCOPES
from kvproof.search import ways
from kvproof.search.walks import Pairs


def test_the_kept_ways_of_pinning_are_those_of_this_machine() -> None:
    machine = Machine(Contract("pinning"), SCOPES["s3"])
    pairs = Pairs(machine, lambda: False)
    fresh = ways.found(machine, pairs)
    assert pairs.finished
    assert (fresh.states, len(fresh.pairs)) == (26600, 77)
    assert ways.read("pinning", "s3") == fresh


def test_the_kept_ways_of_fencing_are_of_its_whole_exploration() -> None:
    kept = ways.read("fencing", "s3")
    assert kept is not None
    assert (kept.states, len(kept.pairs)) == (1_760_406, 149)


def test_a_scope_without_kept_ways_has_none() -> None:
    assert ways.read("pinning", "s1") is None
