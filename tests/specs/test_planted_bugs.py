"""Every property can fail: each is broken by a planted bug, caught under its name and by a shortest path."""

import pytest
from tests.specs.planted.bank import PLANTS, Plant

from kvmodel import Contract, Machine, Scope
from kvmodel.actions import key
from kvproof.search.graph import Explored, Graph
from kvproof.search.names import retold
from kvspecs.catalogue import AGREEMENT, EVENTS, NAMES


def explored(plant: Plant) -> Explored:
    return Graph(Machine(plant.contract, plant.scope)).explore(lambda: False, lambda said: None)


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])
def test_a_planted_bug_is_caught_under_its_property(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a shortest path of legal actions, which can be walked when it is told in one naming."""
    plant.plant(monkeypatch)
    found = explored(plant)
    assert found.violation is not None
    assert found.violation.property == plant.breaks
    assert len(found.violation.path) == plant.length

    machine = Machine(plant.contract, plant.scope)
    state = machine.initial()
    path = retold(machine, found.violation.path)
    way, last = path[:-1], path[-1] if path else None
    for action in way:
        assert key(action) in map(key, machine.actions(state))
        state = machine.step(state, action)
    assert last is None or key(last) in map(key, machine.actions(state))


@pytest.mark.parametrize(("contract", "scope"), sorted({(plant.contract, plant.scope) for plant in PLANTS}, key=str))
def test_without_a_bug_the_same_scopes_hold(contract: Contract, scope: Scope) -> None:
    """Further than any planted bug lies; the largest are cut."""
    graph = Graph(Machine(contract, scope))
    found = graph.explore(lambda: len(graph.states) > 4000, lambda said: None)
    assert found.violation is None
    assert found.finished or found.depth > max(plant.length for plant in PLANTS if plant.scope == scope)


def test_every_property_is_broken_by_some_bug() -> None:
    """All but those about engines: one of engines with choices of their own (see test_agreement), one of what they
    announce (see test_events)."""
    assert {plant.breaks for plant in PLANTS} == set(NAMES) - {AGREEMENT, EVENTS.name}
    assert len(PLANTS) >= 40
    assert len({plant.name for plant in PLANTS}) == len(PLANTS)
