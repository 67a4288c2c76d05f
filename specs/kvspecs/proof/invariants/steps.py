"""Launched steps: their order, what they share with tables, and what they write."""

from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, any_of, differ, implies, no
from kvspecs.proof.state import (
    State,
    Vocabulary,
    awaiting,
    in_awaited,
    in_launched_step,
    in_share,
    in_table,
    through,
    written_by,
    written_by_awaited,
)

_USE = "no-use-after-free"
_READS = "reads-what-was-written"
_FENCE = "fence-before-reuse"


def awaited_is_last(w: Vocabulary, s: State, g: Term) -> Term:
    a, b = awaiting(s)
    here = s.in_steps(g)
    return all_of(
        a >= -1,
        b >= -1,
        implies(a >= 0, all_of(s.in_steps(a), no(s.handled(a)))),
        implies(b >= 0, all_of(w.deep, a >= 0, a < b, s.in_steps(b), no(s.handled(b)))),
        implies(here, g >= 0),
        implies(all_of(here, no(s.handled(g))), any_of(g == a, g == b)),
        implies(all_of(here, a >= 0), any_of(g <= a, g == b)),
    )


def compute_order(w: Vocabulary, s: State, f: Term, g: Term, x: Term) -> Term:
    return implies(all_of(s.in_steps(f), s.in_steps(g), f < g, s.ran(g, x)), s.ran(f, x))


def lagging(w: Vocabulary, s: State, g: Term) -> Term:
    return implies(all_of(s.in_steps(g), s.handled(g)), no(s.ran(g, s.laggard(g))))


def computes_for_running(w: Vocabulary, s: State, r: Term) -> Term:
    return implies(in_launched_step(s, r), s.phase(r) == w.running)


def share_of_running(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return implies(any_of(*(through(s, g, r, d) for g in awaiting(s))), s.table(r, d))


def share_and_tables(w: Vocabulary, s: State, r: Term, q: Term, d: Term) -> Term:
    """Who else holds a block of a step holds it as the step does; and what is written, only its own request holds."""
    a = s.awaited()

    def written(g: Term) -> Term:
        return all_of(s.writer(g, d) == q, through(s, g, q, d), no(s.computed(q, d)))

    def agrees(g: Term) -> Term:
        read = any_of(s.computed(q, d), all_of(written_by(s, a, d), written(a)))
        return implies(
            all_of(g >= 0, in_share(s, g, r, d), s.table(q, d)),
            all_of(
                s.stands_for(q, d) == s.step_key(g, d),
                s.step_old(g, d) == s.outdated(q),
                any_of(all_of(s.writes(g, d), written(g)), all_of(no(s.writes(g, d)), read)),
            ),
        )

    return all_of(*(agrees(g) for g in awaiting(s)))


def shares_agree(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    a, b = awaiting(s)
    both = all_of(b >= 0, through(s, a, r, d), s.shares(b, r))
    same = all_of(s.step_key(b, d) == s.step_key(a, d), s.step_old(b, d) == s.step_old(a, d))
    return implies(both, all_of(through(s, b, r, d), same, no(s.writes(b, d))))


def ahead_writes_fresh(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    a, b = awaiting(s)
    return implies(all_of(written_by(s, b, d), a >= 0), no(in_share(s, a, r, d)))


def writer_shares(w: Vocabulary, s: State, g: Term, d: Term) -> Term:
    return implies(all_of(s.in_steps(g), s.writes(g, d)), in_share(s, g, s.writer(g, d), d))


def share_has_key(w: Vocabulary, s: State, g: Term, r: Term, d: Term) -> Term:
    return implies(all_of(s.in_steps(g), in_share(s, g, r, d)), no(s.step_key(g, d) == w.none))


def written_is_exclusive(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return implies(
        in_awaited(s, r, d), all_of(*(implies(written_by(s, g, d), r == s.writer(g, d)) for g in awaiting(s)))
    )


def written_not_cached(w: Vocabulary, s: State, d: Term) -> Term:
    return implies(written_by_awaited(s, d), s.device_key(d) == w.none)


def cached_as_in_step(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    def agrees(g: Term) -> Term:
        shared = all_of(g >= 0, in_share(s, g, r, d), differ(s.device_key(d), w.none))
        return implies(shared, all_of(s.step_key(g, d) == s.device_key(d), no(s.step_old(g, d))))

    return all_of(*(agrees(g) for g in awaiting(s)))


def last_writer(w: Vocabulary, s: State, g: Term, d: Term) -> Term:
    last = s.wrote(d)
    return implies(
        all_of(s.in_steps(g), s.writes(g, d)),
        any_of(g == last, all_of(g < last, s.in_steps(last), s.writes(last, d))),
    )


def awaited_wrote(w: Vocabulary, s: State, d: Term) -> Term:
    return all_of(*(implies(written_by(s, g, d), s.wrote(d) == g) for g in awaiting(s)))


def read_after(w: Vocabulary, s: State, g: Term, r: Term, d: Term, f: Term) -> Term:
    """Of the steps before a reader, the one that it reads from is the last one to write the block."""
    reads = all_of(s.in_steps(g), in_share(s, g, r, d), no(s.writes(g, d)))
    source = s.read_from(g, d)
    return implies(
        all_of(reads, s.in_steps(f), s.writes(f, d), f < g),
        any_of(f == source, all_of(f < source, source < g, s.in_steps(source), s.writes(source, d))),
    )


def stored_after(w: Vocabulary, s: State, j: Term, d: Term) -> Term:
    """A store waits for the step that wrote what it reads, while that is on its way."""
    stores = all_of(in_table(w, s, j), no(s.is_load(j)), s.job_device(j, d))
    return implies(stores, s.stored_from(j, d) <= s.waits_for_step(j))


def read_before(w: Vocabulary, s: State, g: Term, r: Term, d: Term) -> Term:
    return implies(all_of(s.in_steps(g), in_share(s, g, r, d)), s.read_from(g, d) < g)


INVARIANTS = (
    Invariant(
        "awaited-is-last",
        "S",
        awaited_is_last,
        "only the last step is not handled, at depth 2 the last two",
        _USE,
    ),
    Invariant("compute-order", "SSW", compute_order, "computes run in the order of their launches", _FENCE),
    Invariant("lagging", "S", lagging, "a handled step that is still there has a worker that lags", _FENCE),
    Invariant("computes-for-running", "R", computes_for_running, "a step computes for running requests", _USE),
    Invariant("share-of-running", "RD", share_of_running, "in blocks that they hold", _USE),
    Invariant("share-and-tables", "RRD", share_and_tables, "what it writes, only its own request holds", _USE),
    Invariant("shares-agree", "RD", shares_agree, "a request's younger share goes on where the older one ends", _USE),
    Invariant("ahead-writes-fresh", "RD", ahead_writes_fresh, "the step ahead writes nothing of the one before", _USE),
    Invariant("writer-shares", "SD", writer_shares, "who is written for has the block in its share", _USE),
    Invariant("share-has-key", "SRD", share_has_key, "every block of a step stands for a key", _READS),
    Invariant("written-is-exclusive", "RD", written_is_exclusive, "what it writes is in one share", _USE),
    Invariant("written-not-cached", "D", written_not_cached, "what is being written cannot be hit", _USE),
    Invariant("cached-as-in-step", "RD", cached_as_in_step, "a cached block stands for its key in the step", _READS),
    Invariant("last-writer", "SD", last_writer, "remembered: the last step to write each block", _READS),
    Invariant("awaited-wrote", "D", awaited_wrote, "what the awaited step writes, no later one does", _READS),
    Invariant("read-before", "SRD", read_before, "remembered: a step reads what an earlier one wrote", _READS),
    Invariant("read-after", "SRDS", read_after, "remembered: which step wrote what a step reads", _READS),
    Invariant("stored-after", "JD", stored_after, "a store runs after what writes its source (PR 46278)", _FENCE),
)
