"""Reset: what it does to requests, jobs, keys and contents, for all of them at once; and the refused second free."""

from collections.abc import Mapping
from dataclasses import replace

from kvspecs.proof.action import Action, Clause, Effect, Parameters, holds
from kvspecs.proof.counting import Chosen, Union
from kvspecs.proof.logic import Term, Unary, all_of, any_of, implies, no, pick
from kvspecs.proof.pools import cleared, device, enough, host, released, shared
from kvspecs.proof.state import State, Vocabulary, is_awaited, keeps_references, publishes_into


def _device_freed(w: Vocabulary, s: State, p: Parameters) -> Unary:
    """Lookups let go, whatever is reset; with the device loading and draining requests do, and running ones too unless
    they are kept, except of what launched steps compute in. Under pinning a load that was never launched is
    cancelled."""
    c = s.counts

    def freed(d: Term) -> Term:
        with_device = c.loading(d) + c.draining(d) + c.queued(d)
        return c.looked_up(d) + pick(p.device, with_device, 0) + pick(p.keep, 0, c.idle(d))

    return freed


def _host_freed(w: Vocabulary, s: State, p: Parameters) -> Unary:
    c = s.counts
    if w.pins:
        return lambda h: c.host_looked_up(h) + pick(p.device, c.host_queued(h), 0)
    return lambda h: c.host_looked_up(h) + pick(p.device, c.host_queued(h) + c.host_abandoned(h), 0) + p.host_dropped(h)


def _is_dropped(s: State, p: Parameters, j: Term) -> Term:
    """What the job carries would be published in a tier that is reset."""
    return publishes_into(s, j, p.device, p.host)


def _view_after(w: Vocabulary, s: State, p: Parameters, j: Term) -> Term:
    """Of jobs that would publish there: a load that was never launched is cancelled. pinning: what is in flight is
    abandoned (PR 39726). fencing: it is forgotten (PR 48102), and leaves the table if no worker has anything more to
    say of it."""
    dropped = _is_dropped(s, p, j)
    if w.pins:
        return pick(all_of(s.view(j) == w.live, dropped), pick(s.sent(j), w.abandoned, w.gone), s.view(j))
    forgotten = pick(s.sent(j), pick(p.settled(j), w.gone, w.forgotten), w.gone)
    return pick(all_of(keeps_references(w, s, j), dropped), forgotten, s.view(j))


def _names(p: Parameters) -> tuple[Clause, ...]:
    """Which tiers a reset may name. One alone cannot mean `invalidate`: the other would serve the old weights' KV.
    Requests hold no host blocks: a reset of the host preempts nobody."""
    return (
        holds("names-a-tier", any_of(p.device, p.host)),
        holds("invalidates-both", implies(p.invalidate, all_of(p.device, p.host))),
        holds("host-preempts-nobody", any_of(p.device, p.keep)),
    )


def _answer(w: Vocabulary, s: State, p: Parameters) -> tuple[Clause, ...]:
    """What the reset says. True: under pinning no job has references any more; and nobody came through it with blocks
    of the device, if that is reset, under fencing only if it meant `invalidate`. False: `job` or `survivor` is the
    cause."""

    def survives(r: Term, d: Term) -> Term:
        return all_of(p.device, p.keep, s.table(r, d), s.phase(r) == w.running)

    def stays(j: Term) -> Term:
        return all_of(w.pins, keeps_references(w, s, j), any_of(s.sent(j), no(_is_dropped(s, p, j))))

    matters = any_of(w.pins, p.invalidate)
    return (
        Clause("true-is-drained", "J", lambda j: implies(p.answer, no(stays(j)))),
        Clause("true-without-survivors", "RD", lambda r, d: implies(all_of(p.answer, matters), no(survives(r, d)))),
        holds("false-has-a-cause", any_of(p.answer, stays(p.job), all_of(matters, survives(p.survivor, p.block)))),
    )


def _dropped_in_flight(w: Vocabulary, s: State, p: Parameters) -> Mapping[str, Chosen]:
    """The live jobs that are in flight and dropped, by block."""

    def member(j: Term) -> Term:
        return all_of(s.view(j) == w.live, s.sent(j), _is_dropped(s, p, j))

    return {
        "dropped": Chosen("J", "D", lambda j, d: all_of(w.pins, s.job_device(j, d), member(j)), p.dropped),
        "host_dropped": Chosen("J", "H", lambda j, h: all_of(s.job_host(j, h), member(j)), p.host_dropped),
    }


def reset(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """device, host: the tiers that it names, one or both. invalidate: the weights changed; keep: running requests
    survive it; settled(j): nobody has more to say of j; dropped, host_dropped: how many jobs in flight are dropped."""
    keep, invalidate = p.keep, p.invalidate

    def survives(r: Term) -> Term:
        return all_of(keep, s.phase(r) == w.running)

    def lets_go(r: Term) -> Term:
        return all_of(p.device, no(survives(r)))

    def afterwards(r: Term) -> Term:
        begun = any_of(s.phase(r) == w.loading, s.phase(r) == w.running)
        waits = pick(all_of(begun, lets_go(r)), w.waiting, s.phase(r))
        return pick(all_of(s.phase(r) == w.draining, p.device), pick(s.returns(r), w.waiting, w.done), waits)

    def heard(j: Term, x: Term) -> Term:
        return any_of(s.reported(j, x), s.lost(j, x))

    def twice(d: Term) -> Term:
        """Each of two launched steps gets references of its own."""
        return pick(keep, 0, s.counts.twice(d))

    def forgotten(j: Term) -> Term:
        return all_of(not w.pins, keeps_references(w, s, j), s.sent(j), _is_dropped(s, p, j))

    freed, host_freed = _device_freed(w, s, p), _host_freed(w, s, p)
    after = replace(
        s,
        **cleared(w, shared(released(device(s), freed), twice), p.device).device(),
        **cleared(w, released(host(s), host_freed), p.host).host(),
        phase=afterwards,
        table=lambda r, d: all_of(s.table(r, d), no(lets_go(r))),
        outdated=lambda r: any_of(s.outdated(r), all_of(invalidate, survives(r))),
        pins_device=lambda r, d: False,
        pins_host=lambda r, h: False,
        awaits=lambda r, j: all_of(s.awaits(r, j), no(_is_dropped(s, p, j))),
        view=lambda j: _view_after(w, s, p, j),
        flushed=lambda j: any_of(s.flushed(j), forgotten(j)),
        left=lambda g, r: any_of(s.left(g, r), all_of(no(keep), is_awaited(s, g), s.shares(g, r))),
        step_old=lambda g, d: any_of(s.step_old(g, d), invalidate),
        device_old=lambda d, x: any_of(s.device_old(d, x), invalidate),
        host_old=lambda h, x: any_of(s.host_old(h, x), invalidate),
    )
    return Effect(
        guard=(
            *_names(p),
            *_answer(w, s, p),
            Clause("settled-is-settled", "JW", lambda j, x: implies(p.settled(j), heard(j, x))),
            Clause("others-are-not", "J", lambda j: any_of(p.settled(j), no(heard(j, p.unheard(j))))),
        ),
        after=after,
        promises=(enough(device(s), "D", freed), enough(host(s), "H", host_freed)),
        chosen=_dropped_in_flight(w, s, p),
        unions=(
            Union(("after", "left"), (("before", "left"), ("before", "computing"), ("before", "twice"))),
            Union(("after", "left_ahead"), (("before", "left_ahead"), ("before", "ahead"), ("before", "twice"))),
            Union(("before", "launched"), (("after", "launched"), ("chosen", "dropped"))),
            Union(("before", "host_launched"), (("after", "host_launched"), ("chosen", "host_dropped"))),
            *(Union(("after", name), ()) for name in ("queued", "host_queued", "host_abandoned")),
            Union(("after", "abandoned"), (("before", "abandoned"), ("chosen", "dropped"))),
            Union(("after", "host_abandoned"), (("before", "host_abandoned"), ("chosen", "host_dropped"))),
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
            "device": "B",
            "host": "B",
            "invalidate": "B",
            "keep": "B",
            "answer": "B",
            "job": "J",
            "survivor": "R",
            "block": "D",
            "settled": "J>B",
            "unheard": "J>W",
            "dropped": "D>Z",
            "host_dropped": "H>Z",
        },
        reset,
    ),
    Action("FreeTwice", ("FreeTwice",), {"d": "D", "h": "H", "r": "R"}, free_twice),
)
