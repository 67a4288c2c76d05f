"""Ghost cardinalities: what each of them counts, and the few facts about finite sets that the proofs use.

The facts are the only trusted mathematics. Each carries its premise inside, so that it is true of any finite sets:
nothing is ever quantified over sets. `tests/specs/proof/test_counting.py` checks each by brute force.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kvspecs.proof.logic import Term, Unary, all_of, any_of, iff, implies, no, one
from kvspecs.proof.state import State, Vocabulary, awaiting, in_share, through

Member = Callable[[Vocabulary, State, Term, Term], Term]


class Count(NamedTuple):
    """A cardinality: how many elements of sort `counted` are members, for one block of sort `of`."""

    counted: str
    of: str
    member: Member


def _idle(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    launched = any_of(*(through(s, g, r, d) for g in awaiting(s)))
    return all_of(s.table(r, d), s.phase(r) == w.running, no(launched))


def _computing(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return all_of(through(s, s.awaited(), r, d), no(through(s, s.ahead(), r, d)))


def _ahead(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return all_of(through(s, s.ahead(), r, d), no(through(s, s.awaited(), r, d)))


def _twice(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return all_of(*(through(s, g, r, d) for g in awaiting(s)))


def _loading(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return all_of(s.table(r, d), s.phase(r) == w.loading)


def _draining(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return all_of(s.table(r, d), s.phase(r) == w.draining)


def _left(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return _has_left(s, s.awaited(), r, d)


def _left_ahead(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return _has_left(s, s.ahead(), r, d)


def _has_left(s: State, g: Term, r: Term, d: Term) -> Term:
    return all_of(g >= 0, in_share(s, g, r, d), s.left(g, r))


def _looked_up(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return s.pins_device(r, d)


def _host_looked_up(w: Vocabulary, s: State, r: Term, h: Term) -> Term:
    return s.pins_host(r, h)


def _queued(w: Vocabulary, s: State, j: Term, d: Term) -> Term:
    return all_of(w.pins, s.job_device(j, d), s.view(j) == w.live, no(s.sent(j)))


def _launched(w: Vocabulary, s: State, j: Term, d: Term) -> Term:
    return all_of(w.pins, s.job_device(j, d), s.view(j) == w.live, s.sent(j))


def _abandoned(w: Vocabulary, s: State, j: Term, d: Term) -> Term:
    return all_of(w.pins, s.job_device(j, d), s.view(j) == w.abandoned)


def _host_queued(w: Vocabulary, s: State, j: Term, h: Term) -> Term:
    return all_of(s.job_host(j, h), s.view(j) == w.live, no(s.sent(j)))


def _host_launched(w: Vocabulary, s: State, j: Term, h: Term) -> Term:
    return all_of(s.job_host(j, h), s.view(j) == w.live, s.sent(j))


def _host_abandoned(w: Vocabulary, s: State, j: Term, h: Term) -> Term:
    return all_of(s.job_host(j, h), s.view(j) == w.abandoned)


COUNTS: Mapping[str, Count] = {
    "idle": Count("R", "D", _idle),
    "computing": Count("R", "D", _computing),
    "ahead": Count("R", "D", _ahead),
    "twice": Count("R", "D", _twice),
    "loading": Count("R", "D", _loading),
    "draining": Count("R", "D", _draining),
    "left": Count("R", "D", _left),
    "left_ahead": Count("R", "D", _left_ahead),
    "looked_up": Count("R", "D", _looked_up),
    "queued": Count("J", "D", _queued),
    "launched": Count("J", "D", _launched),
    "abandoned": Count("J", "D", _abandoned),
    "host_looked_up": Count("R", "H", _host_looked_up),
    "host_queued": Count("J", "H", _host_queued),
    "host_launched": Count("J", "H", _host_launched),
    "host_abandoned": Count("J", "H", _host_abandoned),
}
"""By name: each field of `Cardinalities`. A request counts for a device block in one way at most, and so does a job."""

DEVICE_OWNERS = (
    "idle",
    "computing",
    "ahead",
    "twice",
    "loading",
    "draining",
    "left",
    "left_ahead",
    "looked_up",
    "queued",
    "launched",
    "abandoned",
)
HOST_OWNERS = ("host_looked_up", "host_queued", "host_launched", "host_abandoned")


class Chosen(NamedTuple):
    """A set that an action chooses, for one block of sort `of`: elements of sort `counted`. `size(block)` is how many.

    The size is a parameter of the action, of which nothing is known but the facts below.
    """

    counted: str
    of: str
    member: Callable[[Term, Term], Term]
    size: Unary


class Union(NamedTuple):
    """After an action, or before it, one set is the disjoint union of others: `whole` and `parts` name (when, count).

    `when` is "before" or "after" the action; of a part also "chosen": a set that the action chooses.
    """

    whole: tuple[str, str]
    parts: tuple[tuple[str, str], ...]


# The facts. `whole` and `parts` are membership of one element; n and ns are the sizes of the sets.


def fact_union(
    doubtful: Term,
    whole: Callable[[Term], Term],
    parts: Sequence[Callable[[Term], Term]],
    n: Term,
    ns: Sequence[Term],
    changed: Term | None,
) -> Term:
    """A set that is the disjoint union of others, except perhaps for one `changed` element, has their sizes' sum.

    `doubtful` is any element for which the premise might fail: if it holds for that one, it holds for all.
    """
    members = [part(doubtful) for part in parts]
    disjoint = all_of(*(no(all_of(one_, other)) for i, one_ in enumerate(members) for other in members[:i]))
    same = iff(whole(doubtful), any_of(*members))
    if changed is None:
        return implies(all_of(same, disjoint), n == sum(ns))
    inside, outside = whole(changed), any_of(*(part(changed) for part in parts))
    difference = one(all_of(inside, no(outside))) - one(all_of(outside, no(inside)))
    return implies(all_of(any_of(doubtful == changed, same), disjoint), n == sum(ns) + difference)


def fact_witness(witness: Term, member: Callable[[Term], Term], n: Term) -> Term:
    """A size is never negative, and a set that is not empty has a member."""
    return all_of(n >= 0, implies(n > 0, member(witness)))


def fact_member(element: Term, member: Callable[[Term], Term], n: Term) -> Term:
    """A set with a member is not empty."""
    return implies(member(element), n >= 1)
