"""Completions: a worker reports a job, or never will; the scheduler handles the output of a step.

`Report` is written as its cases: a report that is not the last of its job, the last one of a live store, of a live load
that brought all of its blocks, of one that did not, and of an abandoned job, one of a forgotten job, and one that
nobody owed. `ReportMark` is `HearMark`, and then a report of each job that the mark covers, in the order of their ids.
"""

from collections.abc import Callable
from dataclasses import replace

from kvspecs.proof.action import Action, Clause, Effect, Parameters, holds
from kvspecs.proof.counting import Chosen, Union
from kvspecs.proof.logic import Term, Unary, all_of, any_of, differ, iff, implies, no, one, pick
from kvspecs.proof.pools import device, enough, host, released
from kvspecs.proof.state import (
    State,
    Vocabulary,
    in_table,
    keeps_references,
    live_load,
    live_store,
    marked,
    through,
    written_by,
)


def _owed(w: Vocabulary, s: State, p: Parameters) -> Clause:
    """The worker has copied the job, and has not been heard of. Where it reports marks, all that the scheduler knows of
    the copies is that a mark covers the job."""
    j, v = p.j, p.v
    copied = pick(w.marks, marked(s, j, v), s.copied(j, v))
    return holds("owed", all_of(in_table(w, s, j), s.sent(j), copied, no(s.reported(j, v)), no(s.lost(j, v))))


def hear_mark(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """A mark of the worker's stores, or of its loads: all with ids below `until` are copied there. It is monotone: one
    that is late or repeated changes nothing. The jobs that it covers are reported by it, one by one."""
    v, load, until = p.v, p.load, p.until

    def later(x: Term, wanted: Term, so_far: Term) -> Term:
        return pick(all_of(x == v, wanted, until > so_far), until, so_far)

    return Effect(
        guard=(
            holds("issued", until <= s.next_job()),
            Clause(
                "is-true",
                "J",
                lambda i: implies(all_of(in_table(w, s, i), iff(s.is_load(i), load), i < until), s.copied(i, v)),
            ),
        ),
        after=replace(
            s,
            stores_marked=lambda x: later(x, no(load), s.stores_marked(x)),
            loads_marked=lambda x: later(x, load, s.loads_marked(x)),
        ),
    )


def lose_mark(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Fault: a mark never comes. The next one says all that it would have said."""
    return Effect(guard=(), after=s)


def _credited(s: State, p: Parameters) -> Callable[[Term, Term], Term]:
    return lambda i, x: any_of(s.reported(i, x), all_of(i == p.j, x == p.v))


def _owes(s: State, p: Parameters) -> Unary:
    """Who has yet to report a job: of this one, `other`."""
    return lambda i: pick(i == p.j, p.other, s.owes(i))


def _by_all(s: State, p: Parameters) -> Clause:
    """Every other worker, by name, has reported it (one worker twice is not two workers)."""
    return Clause("reported-by-all-others", "W", lambda x: any_of(x == p.v, s.reported(p.j, x)))


def _of_job(p: Parameters) -> dict[tuple[str, str], Unary]:
    return {("J", "D"): lambda d: p.j, ("J", "H"): lambda h: p.j}


def report_part(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """`other` has yet to report it."""
    return Effect(
        guard=(
            _owed(w, s, p),
            holds("not-forgotten", keeps_references(w, s, p.j)),
            holds("another-has-not", all_of(differ(p.other, p.v), no(s.reported(p.j, p.other)))),
        ),
        after=replace(s, reported=_credited(s, p), owes=_owes(s, p)),
    )


def _published_if_absent(
    key_of: Unary, pool_key: Unary, eligible: Unary, p: Parameters, sort: str
) -> tuple[Clause, ...]:
    """Which of the eligible blocks are published: each whose key is in no block, one block for each key. `at(b)` is
    where the key of a block that is not published can be hit."""
    publish, at = p.publish, p.at
    return (
        Clause("publishes-eligible", sort, lambda b: implies(publish(b), eligible(b))),
        Clause("publishes-absent", sort * 2, lambda b, c: implies(publish(b), differ(pool_key(c), key_of(b)))),
        Clause(
            "publishes-one-of-a-key",
            sort * 2,
            lambda b, c: implies(all_of(publish(b), publish(c), key_of(b) == key_of(c)), b == c),
        ),
        Clause(
            "publishes-what-it-can",
            sort,
            lambda b: implies(
                all_of(eligible(b), no(publish(b))),
                any_of(pool_key(at(b)) == key_of(b), all_of(publish(at(b)), key_of(at(b)) == key_of(b))),
            ),
        ),
    )


def _release_of_job(w: Vocabulary, s: State, j: Term) -> tuple[Unary, Unary]:
    return (lambda d: one(all_of(w.pins, s.job_device(j, d))), lambda h: one(s.job_host(j, h)))


def _brought(s: State, j: Term, h: Term) -> Term:
    """The pair of that host block was copied by every worker: a part that failed anywhere is worth nothing."""
    return all_of(s.job_host(j, h), no(s.failed(j, h)))


def complete_store(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """What failed is not published. It may be stored again."""
    j = p.j
    freed, host_freed = _release_of_job(w, s, j)
    return Effect(
        guard=(
            _owed(w, s, p),
            _by_all(s, p),
            holds("live-store", live_store(w, s, j)),
            *_published_if_absent(lambda h: s.carries(j, h), s.host_key, lambda h: _brought(s, j, h), p, "H"),
        ),
        after=replace(
            s,
            **released(device(s), freed).device(),
            **released(
                host(s)._replace(key=lambda h: pick(p.publish(h), s.carries(j, h), s.host_key(h))), host_freed
            ).host(),
            reported=_credited(s, p),
            view=lambda i: pick(i == j, w.gone, s.view(i)),
            awaits=lambda r, i: all_of(s.awaits(r, i), differ(i, j)),
        ),
        promises=(enough(device(s), "D", freed), enough(host(s), "H", host_freed)),
        changed=_of_job(p),
    )


def complete_load(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """The request has the blocks computed that were loaded; it runs when it wakes."""
    j = p.j
    r = s.request(j)
    freed, host_freed = _release_of_job(w, s, j)

    def key_of(d: Term) -> Term:
        return s.carries(j, s.host_of(j, d))

    return Effect(
        guard=(
            _owed(w, s, p),
            _by_all(s, p),
            holds("live-load", live_load(w, s, j)),
            Clause("nothing-failed", "H", lambda h: implies(s.job_host(j, h), no(s.failed(j, h)))),
            *_published_if_absent(key_of, s.device_key, lambda d: s.job_device(j, d), p, "D"),
        ),
        after=replace(
            s,
            **released(
                device(s)._replace(key=lambda d: pick(p.publish(d), key_of(d), s.device_key(d))), freed
            ).device(),
            **released(host(s), host_freed).host(),
            reported=_credited(s, p),
            view=lambda i: pick(i == j, w.gone, s.view(i)),
            computed=lambda x, d: any_of(s.computed(x, d), all_of(x == r, s.awaits(r, j), s.job_device(j, d))),
            awaits=lambda x, i: all_of(s.awaits(x, i), differ(i, j)),
        ),
        promises=(enough(device(s), "D", freed), enough(host(s), "H", host_freed)),
        changed=_of_job(p),
    )


def complete_failed_load(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """What it did not bring the request computes. What could not be read is not offered again, and a lookup that found
    it looks again (PR 49328): else everybody who shares the key fails in turn.

    brought        the device blocks that count as loaded: none that failed. The machine takes those before the first
                   one that failed
    again          whose lookups are given up: at least of those who found what could not be read
    pins, host_pins   how many of these lookups pin each block
    """
    j, brought, again = p.j, p.brought, p.again
    r = s.request(j)
    own, host_own = _release_of_job(w, s, j)

    def key_of(d: Term) -> Term:
        return s.carries(j, s.host_of(j, d))

    def unreadable(h: Term) -> Term:
        return all_of(s.job_host(j, h), s.failed(j, h))

    def freed(d: Term) -> Term:
        return own(d) + p.pins(d)

    def host_freed(h: Term) -> Term:
        return host_own(h) + p.host_pins(h)

    tier = device(s)._replace(key=lambda d: pick(p.publish(d), key_of(d), s.device_key(d)))
    host_tier = host(s)._replace(
        key=lambda h: pick(all_of(unreadable(h), s.host_key(h) == s.carries(j, h)), w.none, s.host_key(h))
    )
    return Effect(
        guard=(
            _owed(w, s, p),
            _by_all(s, p),
            holds("live-load", live_load(w, s, j)),
            Clause(
                "brought-is-copied",
                "D",
                lambda d: implies(brought(d), all_of(s.job_device(j, d), _brought(s, j, s.host_of(j, d)))),
            ),
            Clause(
                "finders-look-again", "RH", lambda x, h: implies(all_of(s.pins_host(x, h), unreadable(h)), again(x))
            ),
            *_published_if_absent(key_of, s.device_key, brought, p, "D"),
        ),
        after=replace(
            s,
            **released(tier, freed).device(),
            **released(host_tier, host_freed).host(),
            reported=_credited(s, p),
            view=lambda i: pick(i == j, w.gone, s.view(i)),
            computed=lambda x, d: any_of(s.computed(x, d), all_of(x == r, s.awaits(r, j), brought(d))),
            awaits=lambda x, i: all_of(s.awaits(x, i), differ(i, j)),
            pins_device=lambda x, d: all_of(s.pins_device(x, d), no(again(x))),
            pins_host=lambda x, h: all_of(s.pins_host(x, h), no(again(x))),
        ),
        promises=(enough(device(s), "D", freed), enough(host(s), "H", host_freed)),
        changed=_of_job(p),
        chosen={
            "pins": Chosen("R", "D", lambda x, d: all_of(again(x), s.pins_device(x, d)), p.pins),
            "host_pins": Chosen("R", "H", lambda x, h: all_of(again(x), s.pins_host(x, h)), p.host_pins),
        },
        unions=(
            Union(("before", "looked_up"), (("after", "looked_up"), ("chosen", "pins"))),
            Union(("before", "host_looked_up"), (("after", "host_looked_up"), ("chosen", "host_pins"))),
        ),
    )


def complete_abandoned(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """It publishes nothing (PR 39726). Fencing: the request that drained lets go of its blocks."""
    j = p.j
    r = s.request(j)
    own, host_freed = _release_of_job(w, s, j)

    def drained(x: Term) -> Term:
        return all_of(s.has_request(j), x == r, s.awaits(r, j), s.phase(r) == w.draining)

    def freed(d: Term) -> Term:
        return own(d) + one(all_of(drained(r), s.table(r, d)))

    return Effect(
        guard=(_owed(w, s, p), _by_all(s, p), holds("abandoned", s.view(j) == w.abandoned)),
        after=replace(
            s,
            **released(device(s), freed).device(),
            **released(host(s), host_freed).host(),
            reported=_credited(s, p),
            view=lambda i: pick(i == j, w.gone, s.view(i)),
            phase=lambda x: pick(drained(x), pick(s.returns(x), w.waiting, w.done), s.phase(x)),
            table=lambda x, d: all_of(s.table(x, d), no(drained(x))),
            awaits=lambda x, i: all_of(s.awaits(x, i), differ(i, j)),
        ),
        promises=(enough(device(s), "D", freed), enough(host(s), "H", host_freed)),
        changed={**_of_job(p), ("R", "D"): lambda d: r, ("R", "H"): lambda h: r},
    )


def _settled(s: State, p: Parameters) -> tuple[Clause, ...]:
    """last: every other worker has reported it or never will; else `other` may yet."""

    def heard(x: Term) -> Term:
        return any_of(s.reported(p.j, x), s.lost(p.j, x))

    return (
        Clause("last-is-last", "W", lambda x: implies(p.last, any_of(x == p.v, heard(x)))),
        holds("other-may-yet", any_of(p.last, all_of(differ(p.other, p.v), no(heard(p.other))))),
    )


def report_forgotten(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Nothing but the job table changes (PR 48102)."""
    return Effect(
        guard=(_owed(w, s, p), holds("forgotten", s.view(p.j) == w.forgotten), *_settled(s, p)),
        after=replace(
            s,
            reported=_credited(s, p),
            owes=_owes(s, p),
            view=lambda i: pick(all_of(i == p.j, p.last), w.gone, s.view(i)),
        ),
        changed=_of_job(p),
    )


def report_unowed(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """A completion that is repeated, or of a job that has left the table, or that was never issued."""
    j, v = p.j, p.v
    unowed = any_of(no(in_table(w, s, j)), s.reported(j, v), s.lost(j, v))
    return Effect(guard=(holds("nobody-owed-it", unowed),), after=s)


def lose(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """Fault: the report never comes. A job that is not forgotten keeps what it owns for ever."""
    forgotten = s.view(p.j) == w.forgotten
    return Effect(
        guard=(_owed(w, s, p), *_settled(s, p)),
        after=replace(
            s,
            lost=lambda i, x: any_of(s.lost(i, x), all_of(i == p.j, x == p.v)),
            view=lambda i: pick(all_of(i == p.j, p.last, forgotten), w.gone, s.view(i)),
        ),
        changed=_of_job(p),
    )


def handle_output(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """The worker `v`, on whose output the engine waits, has run the oldest step that is awaited: its requests have
    their blocks computed, and what is published can be hit. What the step owned of requests that left is released.

    last: every worker has run it, so that it leaves the table; else `other` has yet to.
    """
    g = s.awaited()

    def stays(r: Term) -> Term:
        return all_of(s.shares(g, r), no(s.left(g, r)))

    def eligible(d: Term) -> Term:
        return all_of(written_by(s, g, d), stays(s.writer(g, d)), no(s.step_old(g, d)))

    tier = device(s)._replace(key=lambda d: pick(p.publish(d), s.step_key(g, d), s.device_key(d)))
    return Effect(
        guard=(
            holds("awaited", g >= 0),
            holds("computed", s.ran(g, p.v)),
            Clause("last-is-last", "W", lambda x: implies(p.last, s.ran(g, x))),
            holds("other-has-not", any_of(p.last, no(s.ran(g, p.other)))),
            *_published_if_absent(lambda d: s.step_key(g, d), s.device_key, eligible, p, "D"),
        ),
        after=replace(
            s,
            **released(tier, s.counts.left).device(),
            computed=lambda r, d: any_of(s.computed(r, d), through(s, g, r, d)),
            awaited=s.ahead,
            ahead=lambda: -1,
            handled=lambda x: any_of(s.handled(x), x == g),
            in_steps=lambda x: all_of(s.in_steps(x), no(all_of(x == g, p.last))),
            laggard=lambda x: pick(x == g, p.other, s.laggard(x)),
        ),
        promises=(enough(device(s), "D", s.counts.left),),
        unions=(
            Union(("after", "idle"), (("before", "idle"), ("before", "computing"))),
            Union(("after", "computing"), (("before", "ahead"), ("before", "twice"))),
            Union(("after", "left"), (("before", "left_ahead"),)),
        ),
    )


_REPORT = {"j": "J", "v": "W"}

ACTIONS = (
    Action("HearMark", ("ReportMark", "RepeatMark"), {"v": "W", "load": "B", "until": "J"}, hear_mark),
    Action("LoseMark", ("LoseMark",), {"v": "W"}, lose_mark),
    Action("ReportPart", ("Report",), {**_REPORT, "other": "W"}, report_part),
    Action("CompleteStore", ("Report",), {**_REPORT, "publish": "H>B", "at": "H>H"}, complete_store),
    Action("CompleteLoad", ("Report",), {**_REPORT, "publish": "D>B", "at": "D>D"}, complete_load),
    Action(
        "CompleteFailedLoad",
        ("Report",),
        {
            **_REPORT,
            "brought": "D>B",
            "again": "R>B",
            "pins": "D>Z",
            "host_pins": "H>Z",
            "publish": "D>B",
            "at": "D>D",
        },
        complete_failed_load,
    ),
    Action("CompleteAbandoned", ("Report",), _REPORT, complete_abandoned),
    Action("ReportForgotten", ("Report",), {**_REPORT, "last": "B", "other": "W"}, report_forgotten, only="fencing"),
    Action("ReportUnowed", ("DuplicateReport", "ForgeReport"), _REPORT, report_unowed),
    Action("LoseReport", ("LoseReport",), {**_REPORT, "last": "B", "other": "W"}, lose),
    Action(
        "HandleOutput",
        ("HandleOutput",),
        {"v": "W", "last": "B", "other": "W", "publish": "D>B", "at": "D>D"},
        handle_output,
    ),
)
