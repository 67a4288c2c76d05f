"""A property: a sentence that is true of every sound engine, and the predicate that decides it."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from kvmodel.actions import Action
from kvmodel.setting import Setting
from kvmodel.state import State

Broken = str | None
"""What breaks the property, in one sentence without a full stop; None: it holds."""

HoldsFor = Literal["all targets", "kvoffload and strict reading"]


class Property(NamedTuple):
    """A safety property.

    name      stable; it appears in every report and is the name of the module that states it
    sentence  what is true
    holds_for which targets promise it
    on_state  decides it of one state, or None
    on_step   decides it of one transition (before, action, after), or None. `after` is as the rules left it.
    actions   names of the actions whose transitions `on_step` is about; empty: all of them
    """

    name: str
    sentence: str
    on_state: Callable[[Setting, State], Broken] | None = None
    on_step: Callable[[Setting, State, Action, State], Broken] | None = None
    actions: frozenset[str] = frozenset()
    holds_for: HoldsFor = "all targets"


class LivenessProperty(NamedTuple):
    """A liveness property: from every reachable state fair actions can reach a goal, and no fair cycle avoids it.

    goal      decides whether a state is a goal
    without   names of fair actions that do not count as a way to the goal (finishing early is no way to be stored)
    """

    name: str
    sentence: str
    goal: Callable[[Setting, State], bool]
    without: frozenset[str] = frozenset()
