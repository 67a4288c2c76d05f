"""What is to be proved of an action: that it keeps the invariants, and what the properties say of its transitions."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kvspecs.catalogue import SAFETY
from kvspecs.proof.action import Action, Effect, Parameters
from kvspecs.proof.invariant import Invariant
from kvspecs.proof.invariants import ALL as INVARIANTS
from kvspecs.proof.logic import Term
from kvspecs.proof.state import State, Vocabulary
from kvspecs.proof.transitions import TRANSITIONS

INITIAL = "Initial"
"""Stands where an action's name stands, for obligations of the initial state."""


class Obligation(NamedTuple):
    """For all elements of `sorts` the formula holds after the action.

    unchanged  the same formula before the action, if it is an invariant: where both are one, nothing is to be proved
    """

    action: str
    name: str
    property: str
    sorts: str
    formula: Callable[..., Term]
    unchanged: Callable[..., Term] | None = None

    def __str__(self) -> str:
        if self.action == INITIAL:
            return f"the initial state satisfies {self.name}"
        return f"{self.action} keeps {self.name}" if self.unchanged else f"{self.action}: {self.name}"


def properties() -> tuple[str, ...]:
    """The names of the properties that are proved, in the order of the catalogue."""
    served = {"no-double-free", *(i.serves for i in INVARIANTS), *(t.serves for t in TRANSITIONS)}
    return tuple(p.name for p in SAFETY if p.name in served)


def obligations_of(
    w: Vocabulary,
    action: Action,
    p: Parameters,
    before: State,
    effect: Effect,
    after: State,
    invariants: tuple[Invariant, ...],
) -> tuple[Obligation, ...]:
    """Every obligation of one action; `effect` is of `before`, and `after` is its state with counts."""
    return tuple(_obligations(w, action, p, before, effect, after, invariants))


def _obligations(
    w: Vocabulary,
    action: Action,
    p: Parameters,
    before: State,
    effect: Effect,
    after: State,
    invariants: tuple[Invariant, ...],
) -> Iterator[Obligation]:
    for promise in effect.promises:
        yield Obligation(action.name, promise.name, "no-double-free", promise.sorts, promise.formula)
    for transition in TRANSITIONS:
        if transition.concerns(action):
            yield Obligation(
                action.name, transition.name, transition.serves, transition.sorts, transition.of(w, p, before, after)
            )
    for invariant in invariants:
        yield Obligation(
            action.name,
            invariant.name,
            invariant.serves,
            invariant.sorts,
            _of(invariant, w, after),
            _of(invariant, w, before),
        )


def _of(invariant: Invariant, w: Vocabulary, s: State) -> Callable[..., Term]:
    return lambda *elements: invariant.formula(w, s, *elements)
