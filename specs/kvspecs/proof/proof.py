"""The proof of one discipline: all its obligations, property by property."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kvmodel.contract import Discipline
from kvspecs.proof.actions import actions_of
from kvspecs.proof.initial import Start
from kvspecs.proof.obligations import INITIAL, properties
from kvspecs.proof.parametric import Induction
from kvspecs.proof.questions import ASKING_Z3, Ask, Outcome
from kvspecs.proof.ranking.theorems import NAMES as THEOREMS

PROVED, COUNTEREXAMPLE, UNKNOWN = "proved", "counterexample", "unknown"


class Selection(NamedTuple):
    """Which obligations are wanted; empty: all."""

    property: str = ""
    actions: tuple[str, ...] = ()

    def takes(self, action: str) -> bool:
        return not self.actions or action in self.actions


EVERYTHING = Selection()


def prove(
    discipline: Discipline,
    selection: Selection = EVERYTHING,
    ask: Ask = ASKING_Z3,
    stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[Start | Induction, Outcome]]:
    """Every selected obligation with its outcome, those of the initial state first. Ends early when `stop` says so."""
    if selection.takes(INITIAL):
        start = Start(discipline)
        for outcome in start.prove(lambda o: selection.property in ("", o.property), ask):
            yield start, outcome
    for action in actions_of(discipline):
        if not selection.takes(action.name):
            continue
        if stop():
            return
        say(action.name)
        induction = Induction(discipline, action)
        for outcome in induction.prove(lambda o: selection.property in ("", o.property), ask):
            yield induction, outcome
            if stop():
                return


def by_property(outcomes: Sequence[Outcome]) -> Mapping[str, tuple[Outcome, ...]]:
    """The outcomes of each property in the order of the catalogue, then of each theorem."""
    return {
        name: found
        for name in (*properties(), *THEOREMS)
        if (found := tuple(outcome for outcome in outcomes if outcome.obligation.property == name))
    }
