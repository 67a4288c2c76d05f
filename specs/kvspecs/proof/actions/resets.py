"""Reset: what it does to requests, jobs, keys and contents, for all of them at once; and the refused second free."""

from dataclasses import replace

from kvspecs.proof.action import Action, Clause, Effect, Parameters, holds
from kvspecs.proof.counting import Union
from kvspecs.proof.logic import Term, Unary, all_of, any_of, implies, no, pick
from kvspecs.proof.pools import cleared, device, enough, host, released, shared
from kvspecs.proof.state import State, Vocabulary, is_awaited, keeps_references


def _device_freed(w: Vocabulary, s: State, p: Parameters) -> Unary:
    """Lookups, loading and draining requests let go; running ones too unless they are kept, except of what
    launched steps compute in. Under pinning a load that was never launched is cancelled."""
    c = s.counts

    def freed(d: Term) -> Term:
        return c.looked_up(d) + c.loading(d) + c.draining(d) + pick(p.keep, 0, c.idle(d)) + c.queued(d)

    return freed


def _host_freed(w: Vocabulary, s: State) -> Unary:
    c = s.counts
    if w.pins:
        return lambda h: c.host_looked_up(h) + c.host_queued(h)
    return lambda h: c.host_looked_up(h) + c.host_queued(h) + c.host_launched(h) + c.host_abandoned(h)


def _view_after(w: Vocabulary, s: State, p: Parameters, j: Term) -> Term:
    """A load that was never launched is cancelled. pinning: what is in flight is abandoned (PR 39726). fencing: it is
    forgotten (PR 48102), and leaves the table if no worker has anything more to say of it."""
    if w.pins:
        return pick(s.view(j) == w.live, pick(s.sent(j), w.abandoned, w.gone), s.view(j))
    forgotten = pick(s.sent(j), pick(p.settled(j), w.gone, w.forgotten), w.gone)
    return pick(keeps_references(w, s, j), forgotten, s.view(j))


def _answer(w: Vocabulary, s: State, p: Parameters) -> tuple[Clause, ...]:
    """What the reset says. True: under pinning no job is in flight any more; and nobody came through it with blocks,
    under fencing only if it meant `invalidate`. False: `job` or `survivor` is the cause."""

    def survives(r: Term, d: Term) -> Term:
        return all_of(p.keep, s.table(r, d), s.phase(r) == w.running)

    def in_flight(j: Term) -> Term:
        return all_of(w.pins, keeps_references(w, s, j), s.sent(j))

    matters = any_of(w.pins, p.invalidate)
    return (
        Clause("true-is-drained", "J", lambda j: implies(p.answer, no(in_flight(j)))),
        Clause("true-without-survivors", "RD", lambda r, d: implies(all_of(p.answer, matters), no(survives(r, d)))),
        holds("false-has-a-cause", any_of(p.answer, in_flight(p.job), all_of(matters, survives(p.survivor, p.block)))),
    )


def reset(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """invalidate: the weights changed; keep: running requests survive it; settled(j): nobody has more to say of j."""
    keep, invalidate = p.keep, p.invalidate

    def stays(r: Term) -> Term:
        return all_of(keep, s.phase(r) == w.running)

    def begun(r: Term) -> Term:
        return any_of(s.phase(r) == w.waiting, s.phase(r) == w.loading, s.phase(r) == w.running)

    def afterwards(r: Term) -> Term:
        drained = pick(s.returns(r), w.waiting, w.done)
        waits = pick(all_of(begun(r), no(stays(r))), w.waiting, s.phase(r))
        return pick(s.phase(r) == w.draining, drained, waits)

    def heard(j: Term, x: Term) -> Term:
        return any_of(s.reported(j, x), s.lost(j, x))

    def twice(d: Term) -> Term:
        """Each of two launched steps gets references of its own."""
        return pick(keep, 0, s.counts.twice(d))

    freed, host_freed = _device_freed(w, s, p), _host_freed(w, s)
    after = replace(
        s,
        **cleared(w, shared(released(device(s), freed), twice)).device(),
        **cleared(w, released(host(s), host_freed)).host(),
        phase=afterwards,
        table=lambda r, d: all_of(s.table(r, d), stays(r)),
        outdated=lambda r: any_of(s.outdated(r), all_of(invalidate, stays(r))),
        pins_device=lambda r, d: False,
        pins_host=lambda r, h: False,
        awaits=lambda r, j: False,
        view=lambda j: _view_after(w, s, p, j),
        flushed=lambda j: any_of(s.flushed(j), all_of(not w.pins, keeps_references(w, s, j), s.sent(j))),
        left=lambda g, r: any_of(s.left(g, r), all_of(no(keep), is_awaited(s, g), s.shares(g, r))),
        step_old=lambda g, d: any_of(s.step_old(g, d), invalidate),
        device_old=lambda d, x: any_of(s.device_old(d, x), invalidate),
        host_old=lambda h, x: any_of(s.host_old(h, x), invalidate),
    )
    return Effect(
        guard=(
            *_answer(w, s, p),
            Clause("settled-is-settled", "JW", lambda j, x: implies(p.settled(j), heard(j, x))),
            Clause("others-are-not", "J", lambda j: any_of(p.settled(j), no(heard(j, p.unheard(j))))),
        ),
        after=after,
        promises=(enough(device(s), "D", freed), enough(host(s), "H", host_freed)),
        unions=(
            Union(("after", "left"), (("before", "left"), ("before", "computing"), ("before", "twice"))),
            Union(("after", "left_ahead"), (("before", "left_ahead"), ("before", "ahead"), ("before", "twice"))),
            Union(("after", "abandoned"), (("before", "abandoned"), ("before", "launched"))),
            Union(("after", "host_abandoned"), (("before", "host_abandoned"), ("before", "host_launched"))),
        ),
    )


def free_twice(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """A client frees a block that is free, or ends a request that has ended: refused, and nothing changes."""
    freed = any_of(s.device_queued(p.d) > 0, s.host_queued(p.h) > 0, s.phase(p.r) == w.done)
    return Effect(guard=(holds("freed-before", freed),), after=s)


ACTIONS = (
    Action(
        "Reset",
        ("Reset",),
        {
            "invalidate": "B",
            "keep": "B",
            "answer": "B",
            "job": "J",
            "survivor": "R",
            "block": "D",
            "settled": "J>B",
            "unheard": "J>W",
        },
        reset,
    ),
    Action("FreeTwice", ("FreeTwice",), {"d": "D", "h": "H", "r": "R"}, free_twice),
)
