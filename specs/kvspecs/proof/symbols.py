"""Symbols of z3 for all that a state and an action's parameters are, over sorts of any size or of a finite one."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import z3

from kvmodel.contract import Discipline
from kvspecs.proof.action import Action
from kvspecs.proof.counting import COUNTS
from kvspecs.proof.state import TABLES, Cardinalities, State, Vocabulary

NAMES: Mapping[str, str] = {"D": "DeviceBlock", "H": "HostBlock", "R": "Request", "W": "Worker", "K": "Key"}
PHASE, PHASES = z3.EnumSort("Phase", ("ABSENT", "WAITING", "LOADING", "RUNNING", "DRAINING", "DONE"))
VIEW, VIEWS = z3.EnumSort("View", ("LIVE", "ABANDONED", "FORGOTTEN", "GONE"))

_FIXED: Mapping[str, Any] = {
    "J": z3.IntSort(),
    "S": z3.IntSort(),
    "Z": z3.IntSort(),
    "B": z3.BoolSort(),
    "P": PHASE,
    "V": VIEW,
}


class Symbols:
    """Symbols over one choice of sorts. Nothing is known of them yet."""

    def __init__(self, sorts: Mapping[str, Any], none: Any) -> None:
        self.sorts = sorts
        self.none = none

    def vocabulary(self, discipline: Discipline) -> Vocabulary:
        key = self.sorts["K"]
        absent, waiting, loading, running, draining, done = PHASES
        live, abandoned, forgotten, gone = VIEWS
        return Vocabulary(
            discipline=discipline,
            marks=z3.Bool("marks"),
            deep=z3.Bool("deep"),
            none=self.none,
            torn=z3.Const(f"torn_{key.name()}", key),
            below=z3.Function("below", key, key, z3.BoolSort()),
            in_prompt=z3.Function("in_prompt", self.sorts["R"], key, z3.BoolSort()),
            absent=absent,
            waiting=waiting,
            loading=loading,
            running=running,
            draining=draining,
            done=done,
            live=live,
            abandoned=abandoned,
            forgotten=forgotten,
            gone=gone,
        )

    def symbol(self, name: str, arguments: str, value: str) -> Any:
        """A function; without arguments, a constant in the form of a function."""
        if not arguments:
            constant = z3.Const(name, self.sorts[value])
            return lambda: constant
        return z3.Function(name, *(self.sorts[sort] for sort in arguments), self.sorts[value])

    def cardinalities(self, when: str) -> Cardinalities:
        """Sizes of sets, by block."""
        sizes = {
            name: z3.Function(f"{name}_{when}", self.sorts[count.of], z3.IntSort()) for name, count in COUNTS.items()
        }
        return Cardinalities(**sizes)

    def state(self, label: str = "") -> State:
        """A state."""
        tables = {name: self.symbol(name + label, arguments, value) for name, (arguments, value) in TABLES.items()}
        return State(counts=self.cardinalities(f"before{label}"), **tables)

    def parameters(self, action: Action, label: str = "") -> Mapping[str, Any]:
        """Parameters, by name: constants and functions."""
        values: dict[str, Any] = {}
        for name, signature in action.parameters.items():
            arguments, arrow, value = signature.partition(">")
            made = self.symbol(f"p{label}_{name}", arguments if arrow else "", value if arrow else signature)
            values[name] = made if arrow else made()
        return values


@cache
def of_any_size() -> Symbols:
    """Sorts of which nothing is known but that they are not empty."""
    sorts = {letter: z3.DeclareSort(name) for letter, name in NAMES.items()} | dict(_FIXED)
    return Symbols(sorts, z3.Const("none", sorts["K"]))


@cache
def of_sizes(sizes: tuple[tuple[str, int], ...]) -> tuple[Symbols, Mapping[str, tuple[Any, ...]]]:
    """Sorts with so many elements each, and these elements. The first key is no key. Ids are small integers, and for
    steps also -1."""
    sorts, elements = dict(_FIXED), dict[str, tuple[Any, ...]]()
    label = "_".join(f"{letter}{size}" for letter, size in sizes)
    for letter, size in sizes:
        if letter in NAMES:
            names = [f"{letter.lower()}{index}_{label}" for index in range(size)]
            sorts[letter], found = z3.EnumSort(f"{NAMES[letter]}_{label}", names)
            elements[letter] = tuple(found)
        else:
            first = -1 if letter == "S" else 0
            elements[letter] = tuple(z3.IntVal(number) for number in range(first, size))
    return Symbols(sorts, elements["K"][0]), elements
