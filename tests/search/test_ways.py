"""The kept ways of s3: those of pinning are found afresh here; those of fencing in `check --all` alone."""

import pytest

from kvmodel import Contract, Machine
from kvproof.engines import conform
from kvproof.job import Job
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


@pytest.mark.parametrize(("states", "kept", "verdict"), [(206, 52, "PROVED"), (205, 52, ""), (206, 51, "")])
def test_a_kept_list_of_another_machine_is_no_proof(
    monkeypatch: pytest.MonkeyPatch, states: int, kept: int, verdict: str
) -> None:
    """The product search meets every pair: a list that lacks one, or is of other states, is found out."""
    scope, contract = SCOPES["s1"], Contract("pinning")
    machine = Machine(contract, scope)
    fresh = ways.found(machine, Pairs(machine, lambda: False))
    listed = fresh._replace(states=states, pairs=frozenset(sorted(fresh.pairs)[:kept]))
    monkeypatch.setattr(ways, "read", lambda discipline, name: listed)
    job = Job("conform", "kvoffload", "pinning", "s1", scope, contract, device="ledger")
    result = conform.run(job, lambda words: None, lambda: False)
    assert str(result.verdict) == (verdict or "UNDETERMINED")
    assert (conform.STALE in result.detail) == (verdict == "")
