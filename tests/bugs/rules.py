"""Bugs of protocol, planted in the rules of the machine (tests/specs/planted): `explore` looks for them."""

import time
from typing import NamedTuple

import pytest

from kvmodel import Machine
from kvproof.search.graph import Graph
from tests.specs.planted.bank import PLANTS

BY_NAME = {f"rule-{plant.name.replace('_', '-')}": plant for plant in PLANTS}
"""By the id that each has in the bank."""


class Found(NamedTuple):
    """property: that is broken; empty: none is. commands, states: counts; seconds: of processor time."""

    property: str
    commands: int
    states: int
    seconds: float


def explored(name: str) -> Found:
    """What `explore` finds in a machine with this bug."""
    plant = BY_NAME[name]
    with pytest.MonkeyPatch.context() as patch:
        plant.plant(patch)
        started = time.process_time()
        found = Graph(Machine(plant.contract, plant.scope)).explore(lambda: False, lambda said: None)
        seconds = time.process_time() - started
    if found.violation is None:
        return Found("", 0, found.states, seconds)
    return Found(found.violation.property, len(found.violation.path), found.states, seconds)


def recorded(name: str) -> tuple[str, int]:
    """The property that is to be named, and how many actions the shortest way to it takes."""
    return BY_NAME[name].breaks, BY_NAME[name].length


def where(name: str) -> str:
    """Discipline and scope, as the table has them."""
    plant = BY_NAME[name]
    scope = plant.scope
    sizes = f"{scope.device_blocks}/{scope.host_blocks}/{scope.workers}/{scope.resets} {','.join(scope.prompts)}"
    return f"{plant.contract.discipline} {sizes}"
