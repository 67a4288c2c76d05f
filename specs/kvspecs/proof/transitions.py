"""What properties say of single transitions: formulas about the state before an action and the state after it."""

from collections.abc import Callable
from typing import NamedTuple

from kvspecs.proof.action import Action
from kvspecs.proof.logic import Term, all_of, any_of, differ, implies, no
from kvspecs.proof.state import State, Vocabulary, in_table

REPORTS = ("Report", "DuplicateReport", "ForgeReport", "LoseReport")


class Transition(NamedTuple):
    """For all elements of `sorts` the formula holds of every transition of these actions; none: of all actions.

    `but` names actions that it does not speak of.
    """

    name: str
    serves: str
    sorts: str
    formula: Callable[..., Term]
    actions: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def concerns(self, action: Action) -> bool:
        if any(name in self.but for name in action.of):
            return False
        return not self.actions or any(name in self.actions for name in action.of)

    def of(self, w: Vocabulary, before: State, after: State) -> Callable[..., Term]:
        """The formula between these two states."""
        return lambda *elements: self.formula(w, before, after, *elements)


def device_pinned(w: Vocabulary, s: State, t: State, d: Term) -> Term:
    lost = all_of(differ(s.device_key(d), w.none), differ(s.device_key(d), t.device_key(d)))
    return implies(lost, s.device_refs(d) == 0)


def host_pinned(w: Vocabulary, s: State, t: State, h: Term) -> Term:
    lost = all_of(differ(s.host_key(h), w.none), differ(s.host_key(h), t.host_key(h)))
    return implies(lost, s.host_refs(h) == 0)


def ids_go_on(w: Vocabulary, s: State, t: State, j: Term) -> Term:
    new = all_of(no(in_table(w, s, j)), in_table(w, t, j))
    return all_of(t.next_job() >= s.next_job(), implies(new, all_of(s.next_job() <= j, j < t.next_job())))




def completed_when_all_reported(w: Vocabulary, s: State, t: State, j: Term, x: Term) -> Term:
    completed = all_of(in_table(w, s, j), differ(s.view(j), w.forgotten), no(in_table(w, t, j)))
    return implies(completed, t.reported(j, x))


TRANSITIONS: tuple[Transition, ...] = (
    Transition("pinned-device-key-stays", "pinned-is-not-evicted", "D", device_pinned, but=("Reset",)),
    Transition("pinned-host-key-stays", "pinned-is-not-evicted", "H", host_pinned, but=("Reset",)),
    Transition("ids-go-on", "ids-are-never-reused", "J", ids_go_on),
    Transition("completed-when-all-reported", "workers-agree", "JW", completed_when_all_reported, actions=REPORTS),
)
