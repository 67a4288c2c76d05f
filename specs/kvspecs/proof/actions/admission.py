"""Admit: a waiting request gets its blocks; what the host has is loaded."""

from dataclasses import replace

from kvspecs.proof.action import Action, Clause, Effect, Parameters, holds
from kvspecs.proof.actions.requests import awaits_nothing, of_request
from kvspecs.proof.logic import Term, all_of, any_of, differ, implies, no, one, pick
from kvspecs.proof.pools import Tier, device, enough, host, released, taken, touched
from kvspecs.proof.state import State, Vocabulary


def _hits_and_fresh(w: Vocabulary, s: State, p: Parameters) -> tuple[Clause, ...]:
    """Hits are cached, each under the key for which it is used; fresh blocks are free, and no hits."""
    hit, fresh, key = p.hit, p.fresh, p.key
    return (
        holds("waits", s.phase(p.r) == w.waiting),
        awaits_nothing(s, p.r),
        Clause(
            "hit-is-cached",
            "D",
            lambda d: implies(hit(d), all_of(s.device_key(d) == key(d), differ(key(d), w.none))),
        ),
        Clause("fresh-is-free", "D", lambda d: implies(fresh(d), all_of(s.device_refs(d) == 0, no(hit(d))))),
        Clause("fresh-has-key", "D", lambda d: implies(fresh(d), differ(key(d), w.none))),
    )


def _device_after(w: Vocabulary, s: State, p: Parameters) -> Tier:
    """Hits that the lookup does not pin yet are touched, pins that are not used released, fresh blocks taken."""
    r = p.r
    tier = touched(device(s), lambda d: all_of(p.hit(d), no(s.pins_device(r, d))))
    tier = released(tier, lambda d: one(all_of(s.pins_device(r, d), no(p.hit(d)))))
    return taken(w, tier, p.fresh)


def _unused_pins(s: State, p: Parameters) -> Clause:
    return enough(device(s), "D", lambda d: one(all_of(s.pins_device(p.r, d), no(p.hit(d)))))


def admit(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Nothing is to be loaded: it runs."""
    r, hit, fresh, key = p.r, p.hit, p.fresh, p.key
    return Effect(
        guard=_hits_and_fresh(w, s, p),
        after=replace(
            s,
            **_device_after(w, s, p).device(),
            **released(host(s), lambda h: one(s.pins_host(r, h))).host(),
            phase=lambda x: pick(x == r, w.running, s.phase(x)),
            table=lambda x, d: pick(x == r, any_of(hit(d), fresh(d)), s.table(x, d)),
            stands_for=lambda x, d: pick(x == r, key(d), s.stands_for(x, d)),
            computed=lambda x, d: pick(x == r, hit(d), s.computed(x, d)),
            outdated=lambda x: all_of(s.outdated(x), differ(x, r)),
            pins_device=lambda x, d: all_of(s.pins_device(x, d), differ(x, r)),
            pins_host=lambda x, h: all_of(s.pins_host(x, h), differ(x, r)),
        ),
        promises=(_unused_pins(s, p), enough(host(s), "H", lambda h: one(s.pins_host(r, h)))),
        changed=of_request(r),
    )


def admit_with_load(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Host hits are loaded into the first fresh blocks by a job made now, for which the request waits.

    loaded    the host hits
    into      the device block that each is loaded into
    target    the device blocks that are loaded into
    out       the host hit that each is loaded from
    """
    r, hit, fresh, key = p.r, p.hit, p.fresh, p.key
    loaded, into, target, out = p.loaded, p.into, p.target, p.out
    j = s.next_job()
    tier = _device_after(w, s, p)
    if w.pins:
        tier = touched(tier, target)
    host_tier = touched(host(s), lambda h: all_of(loaded(h), no(s.pins_host(r, h))))
    host_tier = released(host_tier, lambda h: one(all_of(s.pins_host(r, h), no(loaded(h)))))

    def made(x: Term) -> Term:
        return x == j

    return Effect(
        guard=(
            *_hits_and_fresh(w, s, p),
            Clause("loaded-is-cached", "H", lambda h: implies(loaded(h), differ(s.host_key(h), w.none))),
            Clause(
                "loaded-goes-into-fresh",
                "H",
                lambda h: implies(
                    loaded(h),
                    all_of(target(into(h)), out(into(h)) == h, key(into(h)) == s.host_key(h)),
                ),
            ),
            Clause(
                "target-is-loaded",
                "D",
                lambda d: implies(target(d), all_of(fresh(d), loaded(out(d)), into(out(d)) == d)),
            ),
        ),
        after=replace(
            s,
            **tier.device(),
            **host_tier.host(),
            phase=lambda x: pick(x == r, w.loading, s.phase(x)),
            table=lambda x, d: pick(x == r, any_of(hit(d), fresh(d)), s.table(x, d)),
            stands_for=lambda x, d: pick(x == r, key(d), s.stands_for(x, d)),
            computed=lambda x, d: pick(x == r, hit(d), s.computed(x, d)),
            outdated=lambda x: all_of(s.outdated(x), differ(x, r)),
            pins_device=lambda x, d: all_of(s.pins_device(x, d), differ(x, r)),
            pins_host=lambda x, h: all_of(s.pins_host(x, h), differ(x, r)),
            awaits=lambda x, i: any_of(s.awaits(x, i), all_of(x == r, made(i))),
            view=lambda i: pick(made(i), w.live, s.view(i)),
            is_load=lambda i: any_of(made(i), s.is_load(i)),
            has_request=lambda i: any_of(made(i), s.has_request(i)),
            request=lambda i: pick(made(i), r, s.request(i)),
            job_device=lambda i, d: pick(made(i), target(d), s.job_device(i, d)),
            job_host=lambda i, h: pick(made(i), loaded(h), s.job_host(i, h)),
            device_of=lambda i, h: pick(made(i), into(h), s.device_of(i, h)),
            host_of=lambda i, d: pick(made(i), out(d), s.host_of(i, d)),
            carries=lambda i, h: pick(made(i), s.host_key(h), s.carries(i, h)),
            failed=lambda i, h: all_of(s.failed(i, h), no(made(i))),
            sent=lambda i: all_of(s.sent(i), no(made(i))),
            copied=lambda i, x: all_of(s.copied(i, x), no(made(i))),
            reported=lambda i, x: all_of(s.reported(i, x), no(made(i))),
            lost=lambda i, x: all_of(s.lost(i, x), no(made(i))),
            flushed=lambda i: all_of(s.flushed(i), no(made(i))),
            waits_for_job=lambda i, k: all_of(s.waits_for_job(i, k), no(made(i))),
            waits_for_step=lambda i: pick(made(i), -1, s.waits_for_step(i)),
            next_job=lambda: j + 1,
        ),
        promises=(
            _unused_pins(s, p),
            enough(host(s), "H", lambda h: one(all_of(s.pins_host(r, h), no(loaded(h))))),
        ),
        changed={**of_request(r), ("J", "D"): lambda d: j, ("J", "H"): lambda h: j},
    )


_CHOICE = {"r": "R", "hit": "D>B", "fresh": "D>B", "key": "D>K"}

ACTIONS = (
    Action("Admit", ("Admit",), _CHOICE, admit),
    Action(
        "AdmitWithLoad",
        ("Admit",),
        {**_CHOICE, "loaded": "H>B", "into": "H>D", "target": "D>B", "out": "D>H"},
        admit_with_load,
    ),
)
