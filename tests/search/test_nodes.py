"""Nodes: each pair once, whatever its parts have in common with those of others; and what was met is not met anew."""

from collections.abc import Hashable

import pytest

from kvmodel import Action, Contract, Machine, State
from kvmodel.contract import Discipline
from kvproof.scopes import SCOPES
from kvproof.search.nodes import Nodes
from kvproof.search.product import Product
from kvproof.targets.kvoffload import Ledger


def test_a_pair_is_new_once() -> None:
    start = Machine(Contract("pinning"), SCOPES["s1"]).initial()
    swapped = start._replace(device=start.host, host=start.device)
    nodes = Nodes()
    assert [nodes.add(start, control) for control in ((1, 2), (2, 1), (1, 2), "whole")] == [True, True, False, True]
    assert nodes.states == 1
    assert nodes.add(swapped, (1, 2))
    assert nodes.states == 2


class Forgetting(Product):
    """Looks at everything anew, at every edge."""

    def _met_again(self, actions: tuple[Action, ...], state: State, snapshot: Hashable) -> None:
        return None


@pytest.mark.parametrize(("scope", "discipline"), [("s1", "pinning"), ("s1", "fencing"), ("s2", "pinning")])
def test_what_was_met_changes_nothing_but_the_time(scope: str, discipline: Discipline) -> None:
    machine = Machine(Contract(discipline), SCOPES[scope])
    found = [
        kind(machine, Ledger(machine.setting), composites=True).search(lambda: False, lambda said: None)
        for kind in (Product, Forgetting)
    ]
    assert found[0] == found[1]
    assert found[0].finished
