"""The job table: ids, views, progress, pairs, and who else may use the blocks of a job."""

from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, any_of, differ, iff, implies, no
from kvspecs.proof.state import (
    State,
    Vocabulary,
    in_awaited,
    in_table,
    keeps_references,
    live_store,
    marked,
    pending,
    written_by_awaited,
)

_IDS = "ids-are-never-reused"
_AGREE = "workers-agree"
_USE = "no-use-after-free"
_TWICE = "no-block-stored-twice-at-once"
_STALE = "stale-completions-change-nothing"
_FENCE = "fence-before-reuse"
_COPY = "one-copy-per-key"


def issued(w: Vocabulary, s: State, j: Term) -> Term:
    known = any_of(in_table(w, s, j), s.sent(j))
    return all_of(s.next_job() >= 0, implies(known, all_of(j >= 0, j < s.next_job())))


def progress(w: Vocabulary, s: State, j: Term, x: Term) -> Term:
    return all_of(
        implies(s.copied(j, x), s.sent(j)),
        implies(any_of(s.reported(j, x), s.lost(j, x)), s.copied(j, x)),
        no(all_of(s.reported(j, x), s.lost(j, x))),
    )


def somebody_owes(w: Vocabulary, s: State, j: Term) -> Term:
    return implies(in_table(w, s, j), no(s.reported(j, s.owes(j))))


def marks_are_issued(w: Vocabulary, s: State, x: Term) -> Term:
    return all_of(s.stores_marked(x) <= s.next_job(), s.loads_marked(x) <= s.next_job())


def marks_are_true(w: Vocabulary, s: State, j: Term, x: Term) -> Term:
    return implies(all_of(in_table(w, s, j), marked(s, j, x)), s.copied(j, x))


def reported_is_marked(w: Vocabulary, s: State, j: Term, x: Term) -> Term:
    return implies(all_of(w.marks, in_table(w, s, j), s.reported(j, x)), marked(s, j, x))


def work_is_in_table(w: Vocabulary, s: State, j: Term, x: Term) -> Term:
    return implies(pending(s, j, x), in_table(w, s, j))


def views(w: Vocabulary, s: State, j: Term) -> Term:
    return all_of(
        implies(all_of(in_table(w, s, j), no(s.sent(j))), all_of(s.view(j) == w.live, s.is_load(j))),
        implies(s.view(j) == w.forgotten, not w.pins),
        implies(all_of(s.view(j) == w.abandoned, not w.pins), s.is_load(j)),
    )


def threshold(w: Vocabulary, s: State, i: Term, j: Term) -> Term:
    same = iff(s.is_load(i), s.is_load(j))
    return implies(all_of(same, s.view(i) == w.forgotten, keeps_references(w, s, j)), i < j)


def pairs_from_host(w: Vocabulary, s: State, j: Term, h: Term) -> Term:
    d = s.device_of(j, h)
    return implies(
        all_of(in_table(w, s, j), s.job_host(j, h)),
        all_of(s.job_device(j, d), s.host_of(j, d) == h, differ(s.carries(j, h), w.none)),
    )


def pairs_from_device(w: Vocabulary, s: State, j: Term, d: Term) -> Term:
    h = s.host_of(j, d)
    return implies(all_of(in_table(w, s, j), s.job_device(j, d)), all_of(s.job_host(j, h), s.device_of(j, h) == d))


def stream_order(w: Vocabulary, s: State, i: Term, j: Term, x: Term) -> Term:
    same = iff(s.is_load(i), s.is_load(j))
    return implies(all_of(same, i < j, s.sent(i), s.copied(j, x)), s.copied(i, x))


def queued_is_youngest(w: Vocabulary, s: State, i: Term, j: Term) -> Term:
    return implies(all_of(in_table(w, s, j), no(s.sent(j)), s.is_load(i), s.sent(i)), i < j)


def store_alone(w: Vocabulary, s: State, i: Term, j: Term, h: Term) -> Term:
    both = all_of(keeps_references(w, s, i), no(s.is_load(i)), keeps_references(w, s, j))
    return implies(all_of(both, s.job_host(i, h), s.job_host(j, h)), i == j)


def store_not_cached(w: Vocabulary, s: State, j: Term, h: Term) -> Term:
    writes = all_of(keeps_references(w, s, j), no(s.is_load(j)), s.job_host(j, h))
    return implies(writes, s.host_key(h) == w.none)


def load_alone(w: Vocabulary, s: State, i: Term, j: Term, d: Term) -> Term:
    loads = all_of(keeps_references(w, s, i), s.is_load(i), s.job_device(i, d))
    other = all_of(keeps_references(w, s, j), any_of(s.is_load(j), w.pins), s.job_device(j, d))
    return implies(all_of(loads, other), i == j)


def abandoned_load_alone(w: Vocabulary, s: State, j: Term, d: Term, r: Term) -> Term:
    writes = all_of(s.view(j) == w.abandoned, s.is_load(j), s.job_device(j, d))
    return implies(writes, no(any_of(s.table(r, d), s.pins_device(r, d), in_awaited(s, r, d))))


def load_not_cached(w: Vocabulary, s: State, j: Term, d: Term) -> Term:
    writes = all_of(keeps_references(w, s, j), s.is_load(j), s.job_device(j, d))
    return implies(writes, s.device_key(d) == w.none)


def stored_is_not_rewritten(w: Vocabulary, s: State, j: Term, d: Term, r: Term) -> Term:
    reads = all_of(keeps_references(w, s, j), no(s.is_load(j)), s.job_device(j, d))
    unwritten = all_of(s.table(r, d), no(s.computed(r, d)))
    return implies(all_of(reads, unwritten), written_by_awaited(s, d))


def stored_once(w: Vocabulary, s: State, i: Term, j: Term, h: Term, g: Term) -> Term:
    both = all_of(live_store(w, s, i), live_store(w, s, j), s.job_host(i, h), s.job_host(j, g))
    return implies(all_of(both, s.carries(i, h) == s.carries(j, g)), all_of(i == j, h == g))


def stored_not_on_host(w: Vocabulary, s: State, j: Term, h: Term, g: Term) -> Term:
    return implies(all_of(live_store(w, s, j), s.job_host(j, h)), differ(s.host_key(g), s.carries(j, h)))


def device_copies(w: Vocabulary, s: State, d: Term, e: Term) -> Term:
    return implies(all_of(differ(s.device_key(d), w.none), s.device_key(d) == s.device_key(e)), d == e)


def host_copies(w: Vocabulary, s: State, h: Term, g: Term) -> Term:
    return implies(all_of(differ(s.host_key(h), w.none), s.host_key(h) == s.host_key(g)), h == g)


INVARIANTS = (
    Invariant("issued", "J", issued, "every job has an id that was given out, once", _IDS),
    Invariant("progress", "JW", progress, "launched, then copied, then reported or lost", _AGREE),
    Invariant("somebody-owes", "J", somebody_owes, "a job that all have reported leaves the table", _AGREE),
    Invariant("marks-are-issued", "W", marks_are_issued, "no mark says anything of jobs to come", _AGREE),
    Invariant("marks-are-true", "JW", marks_are_true, "what a mark covers is copied, of its stream and worker", _AGREE),
    Invariant("reported-is-marked", "JW", reported_is_marked, "who reports marks reports by them alone", _AGREE),
    Invariant("work-is-in-table", "JW", work_is_in_table, "a scheduler that forgets hides no copies", _AGREE),
    Invariant("views", "J", views, "what was never launched is a live load; views fit the discipline", _STALE),
    Invariant(
        "threshold",
        "JJ",
        threshold,
        "forgotten ids are below others of their direction (PR 48102)",
        _STALE,
        "fencing",
    ),
    Invariant("pairs-from-host", "JH", pairs_from_host, "a job pairs blocks one to one, each under a key", _USE),
    Invariant("pairs-from-device", "JD", pairs_from_device, "and the other way round", _USE),
    Invariant("stream-order", "JJW", stream_order, "copies of one direction run in the order of their ids", _FENCE),
    Invariant("queued-is-youngest", "JJ", queued_is_youngest, "what is launched later has a greater id", _FENCE),
    Invariant("store-alone", "JJH", store_alone, "who writes a host block has it to itself", _USE),
    Invariant("store-not-cached", "JH", store_not_cached, "and nobody can hit it", _USE),
    Invariant("load-alone", "JJD", load_alone, "who loads into a device block has it to itself", _USE),
    Invariant(
        "abandoned-load-alone", "JDR", abandoned_load_alone, "also when its request has left it", _USE, "pinning"
    ),
    Invariant("load-not-cached", "JD", load_not_cached, "and nobody can hit it", _USE),
    Invariant(
        "stored-is-not-rewritten", "JDR", stored_is_not_rewritten, "a store's source is not given away", _USE, "pinning"
    ),
    Invariant("stored-once", "JJHH", stored_once, "no two live stores carry one key", _TWICE),
    Invariant("stored-not-on-host", "JHH", stored_not_on_host, "nor one that the host has", _TWICE),
    Invariant("device-copies", "DD", device_copies, "a key is published only if it is absent", _COPY),
    Invariant("host-copies", "HH", host_copies, "a key is published only if it is absent", _COPY),
)
