"""What blocks truly hold on every worker, and who may rely on it."""

from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, differ, implies, no
from kvspecs.proof.state import (
    State,
    Vocabulary,
    awaiting,
    computing,
    in_awaited,
    in_share,
    in_table,
    live_load,
    live_store,
    pending,
    promised,
    written_by,
    yields,
)

_PUBLISHED = "published-after-all-copied"
_READS = "reads-what-was-written"
_USE = "no-use-after-free"


def cached_on_device(w: Vocabulary, s: State, d: Term, x: Term) -> Term:
    key = s.device_key(d)
    return implies(differ(key, w.none), promised(s, d, x, key, False))


def cached_on_host(w: Vocabulary, s: State, h: Term, x: Term) -> Term:
    key = s.host_key(h)
    return implies(differ(key, w.none), all_of(s.host_holds(h, x) == key, no(s.host_old(h, x))))


def computed_in_table(w: Vocabulary, s: State, r: Term, d: Term, x: Term) -> Term:
    return implies(all_of(s.table(r, d), s.computed(r, d)), promised(s, d, x, s.stands_for(r, d), s.outdated(r)))


def awaited_writes(w: Vocabulary, s: State, d: Term, x: Term) -> Term:
    return all_of(
        *(implies(written_by(s, g, d), promised(s, d, x, s.step_key(g, d), s.step_old(g, d))) for g in awaiting(s))
    )


def step_reads(w: Vocabulary, s: State, g: Term, r: Term, d: Term, x: Term) -> Term:
    reads = all_of(computing(s, g, x), in_share(s, g, r, d), no(s.writes(g, d)))
    source = s.read_from(g, d)
    return implies(reads, yields(s, source, d, x, s.step_key(g, d), s.step_old(g, d)))


def awaited_reads(w: Vocabulary, s: State, r: Term, d: Term, x: Term) -> Term:
    def reads(g: Term) -> Term:
        return all_of(g >= 0, in_share(s, g, r, d), no(s.writes(g, d)))

    return all_of(*(implies(reads(g), promised(s, d, x, s.step_key(g, d), s.step_old(g, d))) for g in awaiting(s)))


def store_reads(w: Vocabulary, s: State, j: Term, h: Term, x: Term) -> Term:
    d = s.device_of(j, h)
    reads = all_of(live_store(w, s, j), s.job_host(j, h), pending(s, j, x))
    return implies(reads, yields(s, s.stored_from(j, d), d, x, s.carries(j, h), False))


def store_has_written(w: Vocabulary, s: State, j: Term, h: Term, x: Term) -> Term:
    copied = all_of(live_store(w, s, j), s.job_host(j, h), s.copied(j, x), no(s.failed(j, h)))
    return implies(copied, all_of(s.host_holds(h, x) == s.carries(j, h), no(s.host_old(h, x))))


def load_has_written(w: Vocabulary, s: State, j: Term, h: Term, x: Term) -> Term:
    d = s.device_of(j, h)
    copied = all_of(live_load(w, s, j), s.job_host(j, h), s.copied(j, x), no(s.failed(j, h)))
    return implies(copied, all_of(s.device_holds(d, x) == s.carries(j, h), no(s.device_old(d, x))))


def load_reads(w: Vocabulary, s: State, j: Term, h: Term, x: Term) -> Term:
    reads = all_of(live_load(w, s, j), s.job_host(j, h))
    return implies(reads, all_of(s.host_holds(h, x) == s.carries(j, h), no(s.host_old(h, x))))


def load_after_steps(w: Vocabulary, s: State, j: Term, d: Term, g: Term) -> Term:
    loads = all_of(live_load(w, s, j), s.sent(j), s.job_device(j, d))
    return implies(all_of(loads, s.in_steps(g), s.writes(g, d)), g <= s.waits_for_step(j))


def copied_after_steps(w: Vocabulary, s: State, j: Term, g: Term, x: Term) -> Term:
    waited = all_of(in_table(w, s, j), s.copied(j, x), s.in_steps(g), g <= s.waits_for_step(j))
    return implies(waited, s.ran(g, x))


def _rewritten(s: State, j: Term, g: Term, d: Term, x: Term) -> Term:
    """The worker will compute the block in step `g`, after the copy."""
    return all_of(computing(s, g, x), s.writes(g, d), s.step_waits_for(g, j))


def cached_not_loaded_into(w: Vocabulary, s: State, d: Term, j: Term, x: Term) -> Term:
    loads = all_of(pending(s, j, x), s.is_load(j), s.job_device(j, d))
    cached = differ(s.device_key(d), w.none)
    return implies(all_of(cached, loads), all_of(s.view(j) == w.forgotten, _rewritten(s, j, s.wrote(d), d, x)))


def computed_not_loaded_into(w: Vocabulary, s: State, r: Term, d: Term, j: Term, x: Term) -> Term:
    loads = all_of(pending(s, j, x), s.is_load(j), s.job_device(j, d))
    computed = all_of(s.table(r, d), s.computed(r, d))
    return implies(all_of(computed, loads), all_of(s.view(j) == w.forgotten, _rewritten(s, j, s.wrote(d), d, x)))


def awaited_not_loaded_into(w: Vocabulary, s: State, r: Term, d: Term, j: Term, x: Term) -> Term:
    loads = all_of(pending(s, j, x), s.is_load(j), s.job_device(j, d))
    return implies(
        all_of(in_awaited(s, r, d), loads), all_of(s.view(j) == w.forgotten, _rewritten(s, j, s.wrote(d), d, x))
    )


def loaded_not_stored_into(w: Vocabulary, s: State, j: Term, h: Term, i: Term, x: Term) -> Term:
    loads = all_of(live_load(w, s, j), s.job_host(j, h))
    return implies(loads, no(all_of(pending(s, i, x), no(s.is_load(i)), s.job_host(i, h))))


def host_cached_not_stored_into(w: Vocabulary, s: State, h: Term, j: Term, x: Term) -> Term:
    stores = all_of(pending(s, j, x), no(s.is_load(j)), s.job_host(j, h))
    return implies(stores, s.host_key(h) == w.none)


INVARIANTS = (
    Invariant("cached-on-device", "DW", cached_on_device, "what can be hit is there, or surely will be", _PUBLISHED),
    Invariant("cached-on-host", "HW", cached_on_host, "what can be hit is there on every worker", _PUBLISHED),
    Invariant("computed-in-table", "RDW", computed_in_table, "running requests read what they hold", _READS),
    Invariant("awaited-writes", "DW", awaited_writes, "what the awaited step writes is or will be there", _READS),
    Invariant("awaited-reads", "RDW", awaited_reads, "what it reads is there, whoever leaves meanwhile", _READS),
    Invariant("step-reads", "SRDW", step_reads, "every step that is on its way reads what it was launched for", _READS),
    Invariant("store-reads", "JHW", store_reads, "a live store reads the key that it carries", _READS),
    Invariant("store-has-written", "JHW", store_has_written, "what it copied stays until it publishes", _PUBLISHED),
    Invariant(
        "load-has-written", "JHW", load_has_written, "what a live load copied stays until it publishes", _PUBLISHED
    ),
    Invariant("load-reads", "JHW", load_reads, "a live load reads the key that it carries", _READS),
    Invariant("load-after-steps", "JDS", load_after_steps, "a load waits for those who wrote its target", _READS),
    Invariant("copied-after-steps", "JSW", copied_after_steps, "what has been copied has waited", _READS),
    Invariant("cached-not-loaded-into", "DJW", cached_not_loaded_into, "no stale load spoils a hit", _USE),
    Invariant("computed-not-loaded-into", "RDJW", computed_not_loaded_into, "nor a running request's blocks", _USE),
    Invariant("awaited-not-loaded-into", "RDJW", awaited_not_loaded_into, "nor what the awaited step reads", _USE),
    Invariant("host-not-stored-into", "HJW", host_cached_not_stored_into, "no stale store spoils a hit", _USE),
    Invariant("loaded-not-stored-into", "JHJW", loaded_not_stored_into, "nor what a live load reads", _USE),
)
