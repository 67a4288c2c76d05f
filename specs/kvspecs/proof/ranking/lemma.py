"""What the theorems rest on: lemmas about one state, and about one action."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kvspecs.proof.action import Action, Clause, Parameters
from kvspecs.proof.logic import Term
from kvspecs.proof.ranking.theorems import Theorem
from kvspecs.proof.state import State, Vocabulary


@dataclass(frozen=True)
class Situation:
    """A state; of a lemma about an action also its parameters and the state after it. `choices`: functions that choose
    an element of a set, if it has any (`kvspecs.proof.ranking.choices`)."""

    w: Vocabulary
    before: State
    choices: Mapping[str, Any] = field(default_factory=dict)
    p: Parameters = field(default_factory=lambda: Parameters({}))
    after: State | None = None

    def choose(self, name: str, *arguments: Term) -> Term:
        return self.choices[name](*arguments)

    @property
    def then(self) -> State:
        """The state after the action."""
        assert self.after is not None
        return self.after


Clauses = Callable[..., tuple[Clause, ...]]
"""A function of a situation and the lemma's elements."""


class Lemma(NamedTuple):
    """For all elements of `sorts`: if what is given holds, so does what is shown.

    actions  the actions of the specification that it is about, each; "*": every one; none: it is about one state
    uses     the choices that it speaks of
    terms    elements that its proof has to look at: (sorts of arguments, sort of value, function of the situation);
    looks_at more of them, of its own elements alone: a sort and a term each
    """

    name: str
    theorem: Theorem
    sorts: str
    given: Clauses
    shown: Clauses
    actions: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    terms: tuple[tuple[str, str, Callable[..., Term]], ...] = ()
    looks_at: Callable[..., tuple[tuple[str, Term], ...]] = lambda c, *elements: ()

    def concerns(self, action: Action) -> bool:
        return "*" in self.actions or action.name in self.actions
