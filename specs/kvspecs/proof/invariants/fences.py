"""Of two operations that are on their way on a worker and touch one block, one surely waits for the other.

What makes one wait: the order of its stream, the step that it was launched after, or the copies that its launch
flushed (vLLM PR 41956). These are direct waits; `fence-before-reuse` of the executable catalogue allows chains.
"""

from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, any_of, implies, no
from kvspecs.proof.state import State, Vocabulary, computing, in_share, live_store, pending

_FENCE = "fence-before-reuse"


def store_and_compute(w: Vocabulary, s: State, j: Term, g: Term, d: Term, x: Term) -> Term:
    reads = all_of(pending(s, j, x), no(s.is_load(j)), s.job_device(j, d))
    source = s.stored_from(j, d)
    before = any_of(g == source, all_of(g < source, s.in_steps(source), s.writes(source, d)), s.step_waits_for(g, j))
    return implies(all_of(reads, computing(s, g, x), s.writes(g, d)), before)


def load_and_compute(w: Vocabulary, s: State, j: Term, g: Term, r: Term, d: Term, x: Term) -> Term:
    writes = all_of(pending(s, j, x), s.is_load(j), s.job_device(j, d))
    return implies(
        all_of(writes, computing(s, g, x), in_share(s, g, r, d)),
        any_of(g <= s.waits_for_step(j), s.step_waits_for(g, j)),
    )


def read_and_load(w: Vocabulary, s: State, j: Term, g: Term, r: Term, d: Term, x: Term) -> Term:
    """A step that reads a block after a stale load does so because a step between them computes it."""
    writes = all_of(pending(s, j, x), s.is_load(j), s.job_device(j, d))
    reads = all_of(computing(s, g, x), in_share(s, g, r, d), no(s.writes(g, d)))
    source = s.read_from(g, d)
    rewritten = all_of(computing(s, source, x), s.writes(source, d), s.step_waits_for(source, j))
    return implies(all_of(writes, reads), any_of(g <= s.waits_for_step(j), rewritten))


def store_and_load_on_device(w: Vocabulary, s: State, i: Term, j: Term, d: Term, x: Term) -> Term:
    both = all_of(pending(s, i, x), no(s.is_load(i)), pending(s, j, x), s.is_load(j))
    touch = all_of(s.job_device(i, d), s.job_device(j, d))
    return implies(all_of(both, touch), any_of(s.waits_for_job(i, j), s.waits_for_job(j, i)))


def live_store_and_load(w: Vocabulary, s: State, i: Term, j: Term, d: Term, x: Term) -> Term:
    """A live store that reads a block after a stale load does so because a step between them computes it."""
    both = all_of(pending(s, i, x), live_store(w, s, i), pending(s, j, x), s.is_load(j))
    touch = all_of(s.job_device(i, d), s.job_device(j, d))
    source = s.stored_from(i, d)
    rewritten = all_of(computing(s, source, x), s.writes(source, d), s.step_waits_for(source, j))
    return implies(all_of(both, touch), any_of(s.waits_for_job(j, i), rewritten))


def store_and_load_on_host(w: Vocabulary, s: State, i: Term, j: Term, h: Term, x: Term) -> Term:
    both = all_of(pending(s, i, x), no(s.is_load(i)), pending(s, j, x), s.is_load(j))
    touch = all_of(s.job_host(i, h), s.job_host(j, h))
    return implies(all_of(both, touch), any_of(s.waits_for_job(i, j), s.waits_for_job(j, i)))


INVARIANTS = (
    Invariant("store-and-compute", "JSDW", store_and_compute, "who writes a store's source waits for it", _FENCE),
    Invariant("load-and-compute", "JSRDW", load_and_compute, "who uses a load's target waits for it", _FENCE),
    Invariant("read-and-load", "JSRDW", read_and_load, "what is read is not what a stale load left", _FENCE),
    Invariant("store-and-load", "JJDW", store_and_load_on_device, "copies of one device block are ordered", _FENCE),
    Invariant(
        "live-store-and-load", "JJDW", live_store_and_load, "what is stored is not what a stale load left", _FENCE
    ),
    Invariant("host-store-and-load", "JJHW", store_and_load_on_host, "copies of one host block are ordered", _FENCE),
)
