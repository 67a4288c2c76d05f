"""Who owns each reference, and what is free."""

from kvspecs.proof.counting import DEVICE_OWNERS, HOST_OWNERS
from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, any_of, implies, no, one
from kvspecs.proof.state import State, Vocabulary, in_awaited, keeps_references

_OWNERS = "owners-account-for-references"
_FREE = "free-means-unowned"


def device_owned(w: Vocabulary, s: State, d: Term) -> Term:
    return s.device_refs(d) == sum(getattr(s.counts, name)(d) for name in DEVICE_OWNERS)


def host_owned(w: Vocabulary, s: State, h: Term) -> Term:
    return s.host_refs(h) == sum(getattr(s.counts, name)(h) for name in HOST_OWNERS)


def device_queue(w: Vocabulary, s: State, d: Term) -> Term:
    return all_of(s.device_refs(d) >= 0, s.device_queued(d) == one(s.device_refs(d) == 0))


def host_queue(w: Vocabulary, s: State, h: Term) -> Term:
    return all_of(s.host_refs(h) >= 0, s.host_queued(h) == one(s.host_refs(h) == 0))


def device_unowned(w: Vocabulary, s: State, d: Term, r: Term) -> Term:
    owned = any_of(s.table(r, d), s.pins_device(r, d), in_awaited(s, r, d))
    return implies(s.device_refs(d) == 0, no(owned))


def device_no_job(w: Vocabulary, s: State, d: Term, j: Term) -> Term:
    owned = all_of(w.pins, keeps_references(w, s, j), s.job_device(j, d))
    return implies(s.device_refs(d) == 0, no(owned))


def host_unowned(w: Vocabulary, s: State, h: Term, r: Term) -> Term:
    return implies(s.host_refs(h) == 0, no(s.pins_host(r, h)))


def host_no_job(w: Vocabulary, s: State, h: Term, j: Term) -> Term:
    return implies(s.host_refs(h) == 0, no(all_of(keeps_references(w, s, j), s.job_host(j, h))))


INVARIANTS = (
    Invariant("device-owned", "D", device_owned, "every reference has exactly one named owner", _OWNERS),
    Invariant("host-owned", "H", host_owned, "every reference has exactly one named owner", _OWNERS),
    Invariant("device-queue", "D", device_queue, "a block is in the free queue, once, if it has no references", _FREE),
    Invariant("host-queue", "H", host_queue, "a block is in the free queue, once, if it has no references", _FREE),
    Invariant("device-unowned", "DR", device_unowned, "a block without references is in no table, pin or step", _FREE),
    Invariant("device-no-job", "DJ", device_no_job, "under pinning it is in no job either", _FREE, "pinning"),
    Invariant("host-unowned", "HR", host_unowned, "a block without references is pinned by no lookup", _FREE),
    Invariant("host-no-job", "HJ", host_no_job, "and no job that was not forgotten reads or writes it", _FREE),
)
