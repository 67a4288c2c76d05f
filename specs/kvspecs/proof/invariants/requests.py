"""What requests hold, in which phase, and for which keys."""

from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, any_of, differ, iff, implies, no
from kvspecs.proof.state import State, Vocabulary, keeps_references

_USE = "no-use-after-free"
_READS = "reads-what-was-written"
_PREFIX = "hits-are-prefix-closed"


def table_phase(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    holding = any_of(s.phase(r) == w.loading, s.phase(r) == w.running, s.phase(r) == w.draining)
    return all_of(
        implies(s.table(r, d), all_of(holding, differ(s.stands_for(r, d), w.none))),
        implies(s.pins_device(r, d), s.phase(r) == w.waiting),
    )


def pins_phase(w: Vocabulary, s: State, r: Term, h: Term) -> Term:
    return implies(s.pins_host(r, h), all_of(s.phase(r) == w.waiting, differ(s.host_key(h), w.none)))


def no_draining(w: Vocabulary, s: State, r: Term) -> Term:
    return differ(s.phase(r), w.draining)


def fresh_not_outdated(w: Vocabulary, s: State, r: Term) -> Term:
    return implies(any_of(s.phase(r) == w.loading, s.phase(r) == w.draining), no(s.outdated(r)))


def one_key_for_a_block(w: Vocabulary, s: State, r: Term, q: Term, d: Term) -> Term:
    return implies(
        all_of(s.table(r, d), s.table(q, d)),
        all_of(
            s.stands_for(r, d) == s.stands_for(q, d),
            iff(s.outdated(r), s.outdated(q)),
            any_of(r == q, all_of(s.computed(r, d), s.computed(q, d))),
        ),
    )


def cached_as_it_stands(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return implies(
        all_of(s.table(r, d), differ(s.device_key(d), w.none)),
        all_of(s.stands_for(r, d) == s.device_key(d), s.computed(r, d), no(s.outdated(r))),
    )


def pinned_is_cached(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return implies(s.pins_device(r, d), all_of(differ(s.device_key(d), w.none), w.in_prompt(r, s.device_key(d))))


def device_prefix(w: Vocabulary, s: State, r: Term, d: Term, k: Term) -> Term:
    at = s.found_device(r, k)
    return implies(
        all_of(s.pins_device(r, d), w.below(k, s.device_key(d))), all_of(s.pins_device(r, at), s.device_key(at) == k)
    )


def host_prefix(w: Vocabulary, s: State, r: Term, h: Term, k: Term) -> Term:
    at, host_at = s.found_device(r, k), s.found_host(r, k)
    return implies(
        all_of(s.pins_host(r, h), w.below(k, s.host_key(h))),
        any_of(
            all_of(s.pins_device(r, at), s.device_key(at) == k),
            all_of(s.pins_host(r, host_at), s.host_key(host_at) == k),
        ),
    )


def host_after_device(w: Vocabulary, s: State, r: Term, h: Term, d: Term) -> Term:
    return implies(all_of(s.pins_host(r, h), s.pins_device(r, d)), w.below(s.device_key(d), s.host_key(h)))


def host_pin_in_prompt(w: Vocabulary, s: State, r: Term, h: Term) -> Term:
    return implies(s.pins_host(r, h), w.in_prompt(r, s.host_key(h)))


def awaited_job(w: Vocabulary, s: State, r: Term, j: Term) -> Term:
    loads = any_of(
        all_of(s.phase(r) == w.loading, s.view(j) == w.live),
        all_of(not w.pins, s.phase(r) == w.draining, s.view(j) == w.abandoned),
    )
    stores = all_of(not w.pins, s.view(j) == w.live, differ(s.phase(r), w.loading), differ(s.phase(r), w.draining))
    return implies(
        s.awaits(r, j),
        all_of(
            s.has_request(j),
            s.request(j) == r,
            any_of(all_of(s.is_load(j), loads), all_of(no(s.is_load(j)), stores)),
        ),
    )


def one_load(w: Vocabulary, s: State, r: Term, i: Term, j: Term) -> Term:
    return implies(all_of(s.awaits(r, i), s.awaits(r, j), s.is_load(i), s.is_load(j)), i == j)


def load_is_awaited(w: Vocabulary, s: State, j: Term) -> Term:
    waited = any_of(s.view(j) == w.live, all_of(not w.pins, s.view(j) == w.abandoned))
    return implies(all_of(s.is_load(j), waited), all_of(s.has_request(j), s.awaits(s.request(j), j)))


def load_fills_table(w: Vocabulary, s: State, j: Term, d: Term) -> Term:
    r = s.request(j)
    waited = all_of(keeps_references(w, s, j), s.awaits(r, j))
    return implies(
        all_of(s.is_load(j), waited, s.job_device(j, d)),
        all_of(s.table(r, d), no(s.computed(r, d)), s.stands_for(r, d) == s.carries(j, s.host_of(j, d))),
    )


INVARIANTS = (
    Invariant("table-phase", "RD", table_phase, "only requests with blocks hold any, only waiting ones pin", _USE),
    Invariant("pins-phase", "RH", pins_phase, "only waiting requests pin, and what is pinned keeps its key", _PREFIX),
    Invariant(
        "no-draining", "R", no_draining, "under pinning an abandoned load owns its blocks itself", _USE, "pinning"
    ),
    Invariant("fresh-not-outdated", "R", fresh_not_outdated, "only running requests survive an `invalidate`", _READS),
    Invariant(
        "one-key-for-a-block", "RRD", one_key_for_a_block, "tables share only what is computed, as the same key", _READS
    ),
    Invariant("cached-as-it-stands", "RD", cached_as_it_stands, "a cached block stands for its key in tables", _READS),
    Invariant("pinned-is-cached", "RD", pinned_is_cached, "what a lookup pins keeps its key", _PREFIX),
    Invariant("device-prefix", "RDK", device_prefix, "device hits are an unbroken prefix", _PREFIX),
    Invariant("host-prefix", "RHK", host_prefix, "with the host hits they are one too", _PREFIX),
    Invariant("host-after-device", "RHD", host_after_device, "host hits go on where the device hits end", _PREFIX),
    Invariant("host-pin-in-prompt", "RH", host_pin_in_prompt, "host hits are of the request's prompt", _PREFIX),
    Invariant("awaited-job", "RJ", awaited_job, "a request waits for its own unfinished jobs only (PR 48102)", _USE),
    Invariant("one-load", "RJJ", one_load, "and for one load at most", _USE),
    Invariant("load-is-awaited", "J", load_is_awaited, "a load that writes a request's blocks is waited for", _USE),
    Invariant(
        "load-fills-table", "JD", load_fills_table, "it writes blocks of that request that nobody reads yet", _USE
    ),
)
