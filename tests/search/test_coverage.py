"""The recorder of guard outcomes counts while it lasts, and leaves nothing of itself behind."""

import sys

import pytest

from kvmodel import Contract, Machine
from kvmodel.guards import GUARDS
from kvproof.scopes import SCOPES
from kvproof.search.coverage import recording
from kvproof.search.graph import Graph


def everything() -> dict[tuple[str, str], int]:
    """The identity of every attribute of every module of the machine."""
    return {
        (name, attribute): id(value)
        for name, module in list(sys.modules.items())
        if name == "kvmodel" or name.startswith("kvmodel.")
        for attribute, value in vars(module).items()
        if attribute != "__builtins__"
    }


def test_everything_is_as_before_when_recording_ends() -> None:
    before = everything()
    with recording():
        assert everything() != before
    assert everything() == before


def test_everything_is_as_before_when_recording_ends_in_an_exception() -> None:
    before = everything()
    with pytest.raises(RuntimeError, match="in the middle"), recording():
        raise RuntimeError("in the middle")
    assert everything() == before


def test_every_use_of_every_guard_is_replaced() -> None:
    """Also where a module has imported the question from another."""
    originals = {id(question) for question in GUARDS.values()}
    with recording():
        left = [place for place, identity in everything().items() if identity in originals]
    assert left == []


def test_a_search_counts_the_same_with_and_without() -> None:
    machine = Machine(Contract("pinning"), SCOPES["s1"])
    plain = Graph(machine).explore(lambda: False, lambda said: None)
    with recording() as counts:
        counted = Graph(machine).explore(lambda: False, lambda said: None)
    assert counted == plain
    assert set(counts) == {f"{name}/{answer}" for name in GUARDS for answer in ("yes", "no")}
    for asked in ("policy.is_full", "rules.report.is_live", "rules.wake.is_loaded", "departure.is_on_its_way"):
        assert counts[f"{asked}/yes"] > 0
        assert counts[f"{asked}/no"] > 0


def test_what_a_scope_does_not_have_is_not_answered_yes() -> None:
    """s1 has one worker and no survivors: nobody lags, nobody is outdated."""
    with recording() as counts:
        Graph(Machine(Contract("fencing"), SCOPES["s1"])).explore(lambda: False, lambda said: None)
    assert counts["rules.launch.is_lagging/yes"] == 0
    assert counts["rules.launch.is_lagging/no"] > 0
    assert counts["rules.reset_pinning.is_drained/yes"] == counts["rules.reset_pinning.is_drained/no"] == 0


def test_recordings_do_not_add_up() -> None:
    for _ in range(2):
        with recording() as counts:
            pass
        assert not any(counts.values())
