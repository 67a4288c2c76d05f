"""Elements that are chosen from a set: some member, if there is one; the least; a bound.

These are facts about finite sets, like those in `counting`, with the premise inside: "if this is a member, the chosen
one is". `tests/specs/proof/test_counting.py` checks each by brute force.
"""

from collections.abc import Callable
from typing import NamedTuple

from kvspecs.proof.logic import Term, all_of, any_of, differ, implies, no
from kvspecs.proof.state import State, Vocabulary, computing, in_table, live_load, live_store, pending

Member = Callable[..., Term]
"""Of (vocabulary, state, arguments, element)."""


class Choice(NamedTuple):
    """A function that chooses an element of sort `value` for elements of `arguments`. `least`: which of two members
    comes first; with it the least member is chosen."""

    name: str
    arguments: str
    value: str
    member: Member
    least: Callable[[State, Term, Term], Term] | None = None

    def fact(self, w: Vocabulary, s: State, chosen: Term, *terms: Term) -> Term:
        """What is known of the chosen element because of another one, the last of `terms`."""
        *arguments, other = terms

        def member(x: Term) -> Term:
            return self.member(w, s, *arguments, x)

        return fact_chosen(other, chosen, member, None if self.least is None else self._order(s))

    def _order(self, s: State) -> Callable[[Term, Term], Term]:
        order = self.least
        assert order is not None
        return lambda x, y: order(s, x, y)


def fact_chosen(
    other: Term,
    chosen: Term,
    member: Callable[[Term], Term],
    before: Callable[[Term, Term], Term] | None = None,
) -> Term:
    """If anything is a member, the chosen element is; and nothing comes before it, in a strict total order."""
    found = member(chosen) if before is None else all_of(member(chosen), no(before(other, chosen)))
    return implies(member(other), found)


def _older_copy(s: State, i: Term, j: Term) -> Term:
    return any_of(s.sent_at(i) < s.sent_at(j), all_of(s.sent_at(i) == s.sent_at(j), i < j))


def _loads_as(w: Vocabulary, s: State, j: Term, k: Term, d: Term) -> Term:
    h = s.host_of(j, d)
    return all_of(live_load(w, s, j), s.job_device(j, d), s.carries(j, h) == k, no(s.failed(j, h)))


def _stores_as(w: Vocabulary, s: State, j: Term, k: Term, h: Term) -> Term:
    return all_of(live_store(w, s, j), s.job_host(j, h), s.carries(j, h) == k, no(s.failed(j, h)))


def publishable(s: State, d: Term) -> Term:
    """What handling the output of the awaited step makes a hit, if its key is in no block."""
    g = s.awaited()
    stays = all_of(s.shares(g, s.writer(g, d)), no(s.left(g, s.writer(g, d))))
    return all_of(g >= 0, s.writes(g, d), stays, no(s.step_old(g, d)))


def _computes_as(w: Vocabulary, s: State, k: Term, d: Term) -> Term:
    return all_of(publishable(s, d), s.step_key(s.awaited(), d) == k)


CHOICES: tuple[Choice, ...] = (
    Choice("oldest step", "W", "S", lambda w, s, x, g: computing(s, g, x), lambda s, f, g: f < g),
    Choice("oldest copy", "W", "J", lambda w, s, x, j: pending(s, j, x), _older_copy),
    Choice("last step", "", "S", lambda w, s, g: s.in_steps(g), lambda s, f, g: f > g),
    Choice("last waited for", "", "J", lambda w, s, j: in_table(w, s, j), lambda s, i, j: _waits_longer(s, i, j)),
    Choice("other to run", "SW", "W", lambda w, s, g, x, y: all_of(differ(y, x), no(s.ran(g, y)))),
    Choice("other to report", "JW", "W", lambda w, s, j, x, y: all_of(differ(y, x), no(s.reported(j, y)))),
    Choice(
        "other unheard",
        "JW",
        "W",
        lambda w, s, j, x, y: all_of(differ(y, x), no(s.reported(j, y)), no(s.lost(j, y))),
    ),
    Choice("unheard", "J", "W", lambda w, s, j, y: all_of(no(s.reported(j, y)), no(s.lost(j, y)))),
    Choice("device hit", "K", "D", lambda w, s, k, d: s.device_key(d) == k),
    Choice("host hit", "K", "H", lambda w, s, k, h: s.host_key(h) == k),
    Choice("failed pair", "J", "H", lambda w, s, j, h: all_of(s.job_host(j, h), s.failed(j, h))),
    Choice("loaded as", "JK", "D", _loads_as),
    Choice("stored as", "JK", "H", _stores_as),
    Choice("computed as", "K", "D", _computes_as),
)

BY_NAME = {choice.name: choice for choice in CHOICES}


def _waits_longer(s: State, i: Term, j: Term) -> Term:
    """It waits for a later step; of two that wait for the same one, the younger."""
    same = s.waits_for_step(i) == s.waits_for_step(j)
    return any_of(s.waits_for_step(i) > s.waits_for_step(j), all_of(same, i > j))
