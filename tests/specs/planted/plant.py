"""What a planted bug is, and the scopes that they share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kvmodel import Contract, Scope, State
from kvmodel.actions import Action
from kvmodel.machine import RULES, Rule
from kvmodel.setting import Setting

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Plant:
    """A planted bug.

    source  where the field had it; breaks: the property that catches it
    length  actions of the shortest path to it, the one that shows it included (count)
    """

    plant: Callable[[Patch], None]
    source: str
    contract: Contract
    scope: Scope
    breaks: str
    length: int

    @property
    def name(self) -> str:
        return self.plant.__name__


PLANTS: list[Plant] = []

PINNING, FENCING = Contract("pinning"), Contract("fencing")

S1 = Scope(device_blocks=2, host_blocks=1, workers=1, prompts=("ab",))
S2 = S1._replace(workers=2)
TINY = Scope(device_blocks=1, host_blocks=1, workers=1, prompts=("a",), aborts=False, preempts=False)
PAIR = TINY._replace(prompts=("a", "a"))
SWAP = TINY._replace(host_blocks=2, prompts=("a", "b", "a"))
LOADED = SWAP._replace(failures=1, resets=0)
DEEP = S1._replace(prompts=("a",), decode=1, stops=True)
OVERDUE = TINY._replace(expiries=1)
PINNING_UNTIL = Contract("pinning", deadline="expire")


def planted(
    source: str, contract: Contract, scope: Scope, broken: str, length: int
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def added(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        PLANTS.append(Plant(plant, source, contract, scope, broken, length))
        return plant

    return added


def changed(patch: Patch, kind: type[Action], after: Callable[[Setting, State, Any, State], State]) -> None:
    """The rule of one action does what it does, and then something more."""
    rule = RULES[kind]

    def apply(setting: Setting, state: State, action: Any) -> State:
        return after(setting, state, action, rule.apply(setting, state, action))

    patch.setitem(RULES, kind, Rule(rule.check, apply))
