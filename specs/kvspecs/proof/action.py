"""What an action is: parameters, guard, update; and what it promises besides the invariants."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kvspecs.proof.counting import Chosen, Union
from kvspecs.proof.logic import Term
from kvspecs.proof.state import State, Vocabulary


class Clause(NamedTuple):
    """A formula that holds for all elements of `sorts` (its arguments, by letter). None: it is about no element."""

    name: str
    sorts: str
    formula: Callable[..., Term]


class Parameters:
    """The parameters of one occurrence of an action, by name: elements, and relations and functions that it chooses."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Effect:
    """What an action does in a state.

    guard    it may happen only if all of these hold
    after    the state after it; what is not mentioned stays
    promises what the rule itself relies on, such as that nothing is released that is not referenced
    changed  by (sort counted, sort of block): the one element for which a count's membership may change
    unions   which sets are unions of others across the action (see `kvspecs.proof.counting`)
    chosen   by name: sets that the action chooses and counts
    """

    guard: tuple[Clause, ...]
    after: State
    promises: tuple[Clause, ...] = ()
    changed: Mapping[tuple[str, str], Callable[[Term], Term]] = field(default_factory=dict)
    unions: tuple[Union, ...] = ()
    chosen: Mapping[str, Chosen] = field(default_factory=dict)

    def then(self, **tables: Any) -> "Effect":
        """The same, with some tables after it replaced."""
        return replace(self, after=replace(self.after, **tables))


class Action(NamedTuple):
    """An action of the contract, or one case of it.

    name        as reports name it
    of          the machine's actions that it is, or is a case of
    parameters  name -> signature, such as "R" for a request or "D>B" for a set of device blocks
    effect      its guard and update in a state
    only        the discipline that has it, or "" for both
    terms       (sorts of arguments, sort of value, function of state, parameters and these): elements that a proof
                about this action has to look at, besides its parameters and what they yield
    """

    name: str
    of: tuple[str, ...]
    parameters: Mapping[str, str]
    effect: Callable[[Vocabulary, State, Parameters], Effect]
    only: str = ""
    terms: tuple[tuple[str, str, Callable[..., Term]], ...] = ()


def holds(name: str, formula: Term) -> Clause:
    """A clause about no element."""
    return Clause(name, "", lambda: formula)
