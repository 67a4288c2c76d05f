"""The order of launches: whoever waits on a worker was launched after what it waits for, so that nobody waits in a
circle. `ranking` rests on it."""

from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, iff, implies
from kvspecs.proof.state import State, Vocabulary, in_table

_FENCE = "fence-before-reuse"


def launched_before_now(w: Vocabulary, s: State, j: Term, g: Term) -> Term:
    return all_of(
        implies(all_of(in_table(w, s, j), s.sent(j)), s.sent_at(j) < s.launches()),
        implies(s.in_steps(g), s.step_at(g) < s.launches()),
    )


def steps_in_order(w: Vocabulary, s: State, f: Term, g: Term) -> Term:
    return implies(all_of(s.in_steps(f), s.in_steps(g), f < g), s.step_at(f) < s.step_at(g))


def copies_in_order(w: Vocabulary, s: State, i: Term, j: Term) -> Term:
    both = all_of(in_table(w, s, i), s.sent(i), in_table(w, s, j), s.sent(j), iff(s.is_load(i), s.is_load(j)))
    return implies(all_of(both, i < j), s.sent_at(i) <= s.sent_at(j))


def copy_waits_for_older_copy(w: Vocabulary, s: State, j: Term, i: Term) -> Term:
    waits = all_of(s.sent(j), s.waits_for_job(j, i))
    return implies(waits, all_of(s.sent(i), s.sent_at(i) < s.sent_at(j)))


def copy_waits_for_older_step(w: Vocabulary, s: State, j: Term, g: Term) -> Term:
    waits = all_of(in_table(w, s, j), s.sent(j), s.in_steps(g), g <= s.waits_for_step(j))
    return implies(waits, s.step_at(g) <= s.sent_at(j))


def step_waits_for_older_copy(w: Vocabulary, s: State, g: Term, j: Term) -> Term:
    waits = all_of(s.in_steps(g), s.step_waits_for(g, j))
    return implies(waits, all_of(s.sent(j), s.sent_at(j) < s.step_at(g)))


INVARIANTS = (
    Invariant("launched-before-now", "JS", launched_before_now, "launches are numbered, and the next is new", _FENCE),
    Invariant("steps-in-order", "SS", steps_in_order, "a later step is of a later launch", _FENCE),
    Invariant("copies-in-order", "JJ", copies_in_order, "a later copy of one direction is of no earlier one", _FENCE),
    Invariant("copy-after-copy", "JJ", copy_waits_for_older_copy, "a copy waits for copies launched before", _FENCE),
    Invariant("copy-after-step", "JS", copy_waits_for_older_step, "and for computes launched no later", _FENCE),
    Invariant("step-after-copy", "SJ", step_waits_for_older_copy, "a compute waits for copies launched before", _FENCE),
)
