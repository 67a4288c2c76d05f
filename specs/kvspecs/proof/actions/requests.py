"""Requests: submitted, looked up, grown, woken; and how they let go of their blocks."""

from dataclasses import replace

from kvspecs.proof.action import Action, Clause, Effect, Parameters, holds
from kvspecs.proof.logic import Term, Unary, all_of, any_of, differ, implies, no, one, pick
from kvspecs.proof.pools import device, enough, host, released, shared, taken, touched
from kvspecs.proof.state import State, Vocabulary, awaiting, in_launched_step, in_step, is_awaited, through


def of_request(r: Term) -> dict[tuple[str, str], Unary]:
    """Only this request's membership in the counts of requests changes."""
    return {("R", "D"): lambda d: r, ("R", "H"): lambda h: r}


def awaits_nothing(s: State, r: Term) -> Clause:
    """No job of its own is outstanding."""
    return Clause("awaits-nothing", "J", lambda j: no(s.awaits(r, j)))


def submit(w: Vocabulary, s: State, p: Parameters) -> Effect:
    r = p.r
    return Effect(
        guard=(holds("absent", s.phase(r) == w.absent),),
        after=replace(s, phase=lambda x: pick(x == r, w.waiting, s.phase(x))),
        changed=of_request(r),
    )


def lookup(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """What an earlier lookup pinned is given up; any unbroken prefix of what is cached is pinned (PR 42289)."""
    r, hit, host_hit, at, host_at = p.r, p.hit, p.host_hit, p.at, p.host_at

    def found(k: Term) -> Term:
        return any_of(
            all_of(hit(at(k)), s.device_key(at(k)) == k), all_of(host_hit(host_at(k)), s.host_key(host_at(k)) == k)
        )

    def found_on_device(k: Term) -> Term:
        return all_of(hit(at(k)), s.device_key(at(k)) == k)

    pins = released(device(s), lambda d: one(s.pins_device(r, d)))
    host_pins = released(host(s), lambda h: one(s.pins_host(r, h)))
    return Effect(
        guard=(
            holds("waits", s.phase(r) == w.waiting),
            awaits_nothing(s, r),
            Clause("hit-is-cached", "D", lambda d: implies(hit(d), differ(s.device_key(d), w.none))),
            Clause("hit-is-in-prompt", "D", lambda d: implies(hit(d), w.in_prompt(r, s.device_key(d)))),
            Clause(
                "device-prefix",
                "DK",
                lambda d, k: implies(all_of(hit(d), w.below(k, s.device_key(d))), found_on_device(k)),
            ),
            Clause("host-hit-is-cached", "H", lambda h: implies(host_hit(h), differ(s.host_key(h), w.none))),
            Clause("host-hit-is-in-prompt", "H", lambda h: implies(host_hit(h), w.in_prompt(r, s.host_key(h)))),
            Clause("host-prefix", "HK", lambda h, k: implies(all_of(host_hit(h), w.below(k, s.host_key(h))), found(k))),
            Clause(
                "host-after-device",
                "HD",
                lambda h, d: implies(all_of(host_hit(h), hit(d)), w.below(s.device_key(d), s.host_key(h))),
            ),
        ),
        after=replace(
            s,
            **touched(pins, hit).device(),
            **touched(host_pins, host_hit).host(),
            pins_device=lambda x, d: pick(x == r, hit(d), s.pins_device(x, d)),
            pins_host=lambda x, h: pick(x == r, host_hit(h), s.pins_host(x, h)),
            found_device=lambda x, k: pick(x == r, at(k), s.found_device(x, k)),
            found_host=lambda x, k: pick(x == r, host_at(k), s.found_host(x, k)),
        ),
        promises=(
            enough(device(s), "D", lambda d: one(s.pins_device(r, d))),
            enough(host(s), "H", lambda h: one(s.pins_host(r, h))),
        ),
        changed=of_request(r),
    )


def pins_let_go(w: Vocabulary, s: State, r: Term, phase: Term) -> Effect:
    """The request gets another phase, and what its lookup pinned is released."""
    return Effect(
        guard=(holds("waits", s.phase(r) == w.waiting),),
        after=replace(
            s,
            **released(device(s), lambda d: one(s.pins_device(r, d))).device(),
            **released(host(s), lambda h: one(s.pins_host(r, h))).host(),
            phase=lambda x: pick(x == r, phase, s.phase(x)),
            pins_device=lambda x, d: all_of(s.pins_device(x, d), differ(x, r)),
            pins_host=lambda x, h: all_of(s.pins_host(x, h), differ(x, r)),
        ),
        promises=(
            enough(device(s), "D", lambda d: one(s.pins_device(r, d))),
            enough(host(s), "H", lambda h: one(s.pins_host(r, h))),
        ),
        changed=of_request(r),
    )


def release_lookup(w: Vocabulary, s: State, p: Parameters) -> Effect:
    return pins_let_go(w, s, p.r, w.waiting)


def abort_waiting(w: Vocabulary, s: State, p: Parameters) -> Effect:
    effect = pins_let_go(w, s, p.r, w.done)
    return effect.then(awaits=lambda x, j: all_of(s.awaits(x, j), differ(x, p.r)))


def grow(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """A running request gets free blocks, to compute into."""
    r, fresh, key = p.r, p.fresh, p.key
    return Effect(
        guard=(
            holds("runs", s.phase(r) == w.running),
            Clause("fresh-is-free", "D", lambda d: implies(fresh(d), s.device_refs(d) == 0)),
            Clause("fresh-has-key", "D", lambda d: implies(fresh(d), differ(key(d), w.none))),
        ),
        after=replace(
            s,
            **taken(w, device(s), fresh).device(),
            table=lambda x, d: any_of(s.table(x, d), all_of(x == r, fresh(d))),
            stands_for=lambda x, d: pick(all_of(x == r, fresh(d)), key(d), s.stands_for(x, d)),
            computed=lambda x, d: all_of(s.computed(x, d), no(all_of(x == r, fresh(d)))),
        ),
        changed=of_request(r),
    )


def wake(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """A request whose load is complete becomes runnable."""
    r = p.r
    return Effect(
        guard=(holds("loads", s.phase(r) == w.loading), awaits_nothing(s, r)),
        after=replace(s, phase=lambda x: pick(x == r, w.running, s.phase(x))),
        changed=of_request(r),
    )


def table_let_go(s: State, r: Term, phase: Term) -> Effect:
    """The request owns its table no more. What launched steps compute in passes to these steps, each of which has
    references of its own (PR 45357)."""

    def freed(d: Term) -> Term:
        return one(all_of(s.table(r, d), no(any_of(*(through(s, g, r, d) for g in awaiting(s))))))

    def twice(d: Term) -> Term:
        return one(all_of(*(through(s, g, r, d) for g in awaiting(s))))

    return Effect(
        guard=(),
        after=replace(
            s,
            **shared(released(device(s), freed), twice).device(),
            phase=lambda x: pick(x == r, phase, s.phase(x)),
            table=lambda x, d: all_of(s.table(x, d), differ(x, r)),
            left=lambda g, x: any_of(s.left(g, x), all_of(x == r, is_awaited(s, g), in_step(s, g, r))),
        ),
        promises=(enough(device(s), "D", freed),),
        changed=of_request(r),
    )


def finish(w: Vocabulary, s: State, p: Parameters) -> Effect:
    r = p.r
    effect = table_let_go(s, r, w.done)
    guard = (
        holds("runs", s.phase(r) == w.running),
        holds("in-no-launched-step", no(in_launched_step(s, r))),
        Clause("wholly-computed", "D", lambda d: implies(s.table(r, d), s.computed(r, d))),
    )
    return replace(effect, guard=guard).then(awaits=lambda x, j: all_of(s.awaits(x, j), differ(x, r)))


def leave_running(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Preempted, it waits again, also for its stores; aborted or stopped, it is done."""
    r, again = p.r, p.again
    effect = table_let_go(s, r, pick(again, w.waiting, w.done))
    effect = replace(effect, guard=(holds("runs", s.phase(r) == w.running),))
    return effect.then(awaits=lambda x, j: all_of(s.awaits(x, j), any_of(differ(x, r), again)))


def leave_loaded(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Its load is complete already: nothing will write its blocks."""
    r = p.r
    effect = table_let_go(s, r, pick(p.again, w.waiting, w.done))
    return replace(effect, guard=(holds("loads", s.phase(r) == w.loading), awaits_nothing(s, r)))


def leave_queued_load(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Its load was never launched: it is cancelled, and what it owned is released."""
    r, j = p.r, p.j

    def freed(d: Term) -> Term:
        return one(s.table(r, d)) + one(all_of(w.pins, s.job_device(j, d)))

    def host_freed(h: Term) -> Term:
        return one(s.job_host(j, h))

    effect = table_let_go(s, r, pick(p.again, w.waiting, w.done))
    return Effect(
        guard=(
            holds("loads", s.phase(r) == w.loading),
            holds("awaits-it", s.awaits(r, j)),
            holds("never-launched", no(s.sent(j))),
        ),
        after=replace(
            effect.after,
            **released(device(s), freed).device(),
            **released(host(s), host_freed).host(),
            awaits=lambda x, i: all_of(s.awaits(x, i), differ(x, r)),
            view=lambda i: pick(i == j, w.gone, s.view(i)),
        ),
        promises=(enough(device(s), "D", freed), enough(host(s), "H", host_freed)),
        changed={**of_request(r), ("J", "D"): lambda d: j, ("J", "H"): lambda h: j},
    )


def leave_load_in_flight(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Its load may still write its blocks (SGLang 23392). Pinning: the abandoned load keeps its own references.
    Fencing: the request keeps its blocks, and drains."""
    r, j, again = p.r, p.j, p.again
    guard = (
        holds("loads", s.phase(r) == w.loading),
        holds("awaits-it", s.awaits(r, j)),
        holds("launched", s.sent(j)),
    )
    changed = {**of_request(r), ("J", "D"): lambda d: j, ("J", "H"): lambda h: j}
    if w.pins:
        effect = table_let_go(s, r, pick(again, w.waiting, w.done))
        return replace(effect, guard=guard, changed=changed).then(
            awaits=lambda x, i: all_of(s.awaits(x, i), differ(x, r)),
            view=lambda i: pick(i == j, w.abandoned, s.view(i)),
        )
    return Effect(
        guard=guard,
        after=replace(
            s,
            phase=lambda x: pick(x == r, w.draining, s.phase(x)),
            returns=lambda x: pick(x == r, again, s.returns(x)),
            view=lambda i: pick(i == j, w.abandoned, s.view(i)),
        ),
        changed=changed,
    )


def abort_draining(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """A preempted request that drains will be done, rather than wait again."""
    r = p.r
    return Effect(
        guard=(holds("drains-to-return", all_of(s.phase(r) == w.draining, s.returns(r))),),
        after=replace(s, returns=lambda x: all_of(s.returns(x), differ(x, r))),
    )


LEAVES = ("Preempt", "Abort")

ACTIONS = (
    Action("Submit", ("Submit",), {"r": "R"}, submit),
    Action(
        "Lookup",
        ("Lookup",),
        {"r": "R", "hit": "D>B", "host_hit": "H>B", "at": "K>D", "host_at": "K>H"},
        lookup,
    ),
    Action("ReleaseLookup", ("ReleaseLookup",), {"r": "R"}, release_lookup),
    Action("Grow", ("Grow",), {"r": "R", "fresh": "D>B", "key": "D>K"}, grow),
    Action("Wake", ("Wake",), {"r": "R"}, wake),
    Action("Finish", ("Finish",), {"r": "R"}, finish),
    Action("AbortWaiting", ("Abort",), {"r": "R"}, abort_waiting),
    Action("LeaveRunning", (*LEAVES, "PreemptUnderPressure", "Stop"), {"r": "R", "again": "B"}, leave_running),
    Action("LeaveLoaded", LEAVES, {"r": "R", "again": "B"}, leave_loaded),
    Action("LeaveQueuedLoad", LEAVES, {"r": "R", "j": "J", "again": "B"}, leave_queued_load),
    Action("LeaveLoadInFlight", LEAVES, {"r": "R", "j": "J", "again": "B"}, leave_load_in_flight),
    Action("AbortDraining", ("Abort",), {"r": "R"}, abort_draining, only="fencing"),
)
