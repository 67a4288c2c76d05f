"""What every action leaves as it is: nothing is added to what is left, and what may happen stays so until it happens.
And what the helpful actions take away."""

from collections.abc import Callable
from dataclasses import replace

from kvspecs.proof.action import Clause, holds
from kvspecs.proof.logic import Term, all_of, any_of, iff, implies, no
from kvspecs.proof.ranking.fairness import CREDITS, REPORTS_ARRIVE
from kvspecs.proof.ranking.lemma import Lemma, Situation
from kvspecs.proof.ranking.possible import copying, guard_of, in_flight, launched, owed
from kvspecs.proof.ranking.theorems import (
    JOBS_LEAVE,
    LOADS_ARE_LAUNCHED,
    NOBODY_IS_DEFERRED,
    RESETS_SUCCEED,
    WORKERS_DRAIN,
)
from kvspecs.proof.state import computing, in_table, is_full, keeps_references, marked, pending, publishes_into

DRAIN = ("RunCompute", "RunStore", "RunLoad", "HandleOutput", "ReportUnowed", *REPORTS_ARRIVE.actions)
"""What happens in a drain: copies run and are reported, and nothing else is launched."""


def _nothing(c: Situation, *elements: Term) -> tuple[Clause, ...]:
    return ()


def _at(c: Situation) -> Situation:
    """The situation after the action, as one of its own."""
    return replace(c, before=c.then, after=None)


# Operations on a worker.


def _no_older_compute(c: Situation, g: Term, x: Term, n: Term) -> tuple[Clause, ...]:
    s, t = c.before, c.then
    later = all_of(n < s.launches(), computing(t, g, x), t.step_at(g) <= n)
    return (holds("no-older-compute", implies(later, all_of(computing(s, g, x), s.step_at(g) <= n))),)


def _no_older_copy(c: Situation, j: Term, x: Term, n: Term) -> tuple[Clause, ...]:
    s, t = c.before, c.then
    later = all_of(n < s.launches(), pending(t, j, x), t.sent_at(j) <= n)
    return (holds("no-older-copy", implies(later, all_of(pending(s, j, x), s.sent_at(j) <= n))),)


def _may_compute(c: Situation, g: Term, x: Term) -> tuple[Clause, ...]:
    guard = guard_of(c, "RunCompute", {"g": g, "v": x, "last": False, "other": x})
    return tuple(clause for clause in guard if clause.name in ("launched", "oldest-of-stream", "waits-for-copies"))


def _may_still_compute(c: Situation, g: Term, x: Term) -> tuple[Clause, ...]:
    return _unless(no(computing(c.then, g, x)), _may_compute(_at(c), g, x))


def _may_copy(name: str) -> Callable[..., tuple[Clause, ...]]:
    return lambda c, j, x: guard_of(c, name, copying(j, x))


def _may_still_copy(name: str) -> Callable[..., tuple[Clause, ...]]:
    return lambda c, j, x: _unless(no(pending(c.then, j, x)), guard_of(_at(c), name, copying(j, x)))


def _unless(done: Term, clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
    def weakened(clause: Clause) -> Clause:
        return Clause(clause.name, clause.sorts, lambda *elements: any_of(done, clause.formula(*elements)))

    return tuple(weakened(clause) for clause in clauses)


def _compute_is_done(c: Situation) -> tuple[Clause, ...]:
    return (holds("compute-is-done", no(computing(c.then, c.p.g, c.p.v))),)


def _copy_is_done(c: Situation) -> tuple[Clause, ...]:
    return (holds("copy-is-done", no(pending(c.then, c.p.j, c.p.v))),)


# Launched jobs.


def _is_launched(c: Situation, j: Term) -> tuple[Clause, ...]:
    return (holds("launched", launched(c, j)),)


def _stays_launched(c: Situation, j: Term) -> tuple[Clause, ...]:
    s, t = c.before, c.then
    gone = no(in_table(c.w, t, j))
    return (
        holds("launched", any_of(gone, t.sent(j))),
        holds("by-the-same-launch", any_of(gone, t.sent_at(j) == s.sent_at(j))),
        Clause("what-is-reported-stays-so", "W", lambda x: any_of(gone, implies(s.reported(j, x), t.reported(j, x)))),
    )


def _owes(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    return (holds("owed", owed(c.w, c.before, j, x)),)


def _owes_still(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    t = c.then
    lost = all_of(t.lost(j, x), no(c.before.lost(j, x)))
    return (holds("owed-still", any_of(no(in_table(c.w, t, j)), t.reported(j, x), lost, owed(c.w, t, j, x))),)


def _no_other_report_is_lost(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    return (holds("only-its-own-is-lost", implies(c.then.lost(j, x), any_of(c.before.lost(j, x), c.p.j == j))),)


def _is_covered(c: Situation, j: Term) -> tuple[Clause, ...]:
    same_stream = iff(c.before.is_load(j), c.p.load)
    return (holds("covered", all_of(in_table(c.w, c.before, j), same_stream, j < c.p.until)),)


def _mark_is_heard(c: Situation, j: Term) -> tuple[Clause, ...]:
    return (holds("mark-is-heard", marked(c.then, j, c.p.v)),)


def _is_marked(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    return (holds("marked", all_of(in_table(c.w, c.before, j), marked(c.before, j, x))),)


def _stays_marked(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    return (holds("stays-marked", any_of(no(in_table(c.w, c.then, j)), marked(c.then, j, x))),)


def _report_is_done(c: Situation) -> tuple[Clause, ...]:
    t = c.then
    return (holds("report-is-done", any_of(no(in_table(c.w, t, c.p.j)), t.reported(c.p.j, c.p.v))),)


# Queued loads.


def _is_queued(c: Situation, j: Term) -> tuple[Clause, ...]:
    return (holds("queued", all_of(in_table(c.w, c.before, j), no(c.before.sent(j)))),)


def _same_output_is_awaited(c: Situation, j: Term) -> tuple[Clause, ...]:
    """While no step may be launched; once one may, it may until one is."""
    s, t = c.before, c.then
    over = any_of(no(in_table(c.w, t, j)), t.sent(j))
    same = all_of(t.awaited() == s.awaited(), t.step_at(t.awaited()) == s.step_at(s.awaited()), is_full(c.w, s))
    over = any_of(over, no(is_full(c.w, t)))
    return (
        holds("same-output-is-awaited", any_of(over, same)),
        Clause("who-has-run-has", "W", lambda x: any_of(over, implies(s.ran(s.awaited(), x), _ran(c, x)))),
    )


def _ran(c: Situation, x: Term) -> Term:
    return any_of(c.then.awaited() < 0, c.then.ran(c.then.awaited(), x))


def _output_is_handled(c: Situation) -> tuple[Clause, ...]:
    return (holds("output-is-handled", no(is_full(c.w, c.then))),)


def _load_is_launched(c: Situation, j: Term) -> tuple[Clause, ...]:
    return (holds("load-is-launched", c.then.sent(j)),)


# Jobs in flight during a drain, and the jobs that a request waits for.


def _nothing_takes_off(c: Situation, j: Term) -> tuple[Clause, ...]:
    later = all_of(keeps_references(c.w, c.then, j), c.then.sent(j))
    return (holds("nothing-takes-off", implies(later, in_flight(c, j))),)


def _nothing_stays_live(c: Situation, j: Term) -> tuple[Clause, ...]:
    dropped = publishes_into(c.then, j, c.p.device, c.p.host)
    return (holds("nothing-stays-live", no(all_of(c.then.view(j) == c.w.live, dropped))),)


def _waits_for_no_other(c: Situation, r: Term, j: Term) -> tuple[Clause, ...]:
    """While it waits, or loads, it waits for no job that it did not wait for."""
    w, s, t = c.w, c.before, c.then
    waits = all_of(s.phase(r) == w.waiting, t.phase(r) == w.waiting)
    loads = all_of(s.phase(r) == w.loading, t.phase(r) == w.loading)
    return (holds("waits-for-no-other", implies(all_of(any_of(waits, loads), t.awaits(r, j)), s.awaits(r, j))),)


_EVERY = ("*",)
_LOSES = ("LoseReport",)

LEMMAS: tuple[Lemma, ...] = (
    Lemma("no-older-compute", WORKERS_DRAIN, "SWZ", _nothing, _no_older_compute, _EVERY),
    Lemma("no-older-copy", WORKERS_DRAIN, "JWZ", _nothing, _no_older_copy, _EVERY),
    Lemma("a-compute-may-still-run", WORKERS_DRAIN, "SW", _may_compute, _may_still_compute, _EVERY),
    Lemma("a-store-may-still-run", WORKERS_DRAIN, "JW", _may_copy("RunStore"), _may_still_copy("RunStore"), _EVERY),
    Lemma("a-load-may-still-run", WORKERS_DRAIN, "JW", _may_copy("RunLoad"), _may_still_copy("RunLoad"), _EVERY),
    Lemma("compute-is-done", WORKERS_DRAIN, "", _nothing, _compute_is_done, ("RunCompute",)),
    Lemma("copy-is-done", WORKERS_DRAIN, "", _nothing, _copy_is_done, ("RunStore", "RunLoad")),
    Lemma("stays-launched", JOBS_LEAVE, "J", _is_launched, _stays_launched, _EVERY),
    Lemma("owed-still", JOBS_LEAVE, "JW", _owes, _owes_still, _EVERY),
    Lemma("only-its-own-is-lost", JOBS_LEAVE, "JW", _nothing, _no_other_report_is_lost, _LOSES),
    Lemma("mark-is-heard", JOBS_LEAVE, "J", _is_covered, _mark_is_heard, ("HearMark",)),
    Lemma("stays-marked", JOBS_LEAVE, "JW", _is_marked, _stays_marked, _EVERY),
    Lemma("report-is-done", JOBS_LEAVE, "", _nothing, _report_is_done, CREDITS),
    Lemma("same-output-is-awaited", LOADS_ARE_LAUNCHED, "J", _is_queued, _same_output_is_awaited, _EVERY),
    Lemma("output-is-handled", LOADS_ARE_LAUNCHED, "", _nothing, _output_is_handled, ("HandleOutput",)),
    Lemma("load-is-launched", LOADS_ARE_LAUNCHED, "J", _is_queued, _load_is_launched, ("Launch",)),
    Lemma("nothing-takes-off", RESETS_SUCCEED, "J", _nothing, _nothing_takes_off, DRAIN),
    Lemma("nothing-stays-live", RESETS_SUCCEED, "J", _nothing, _nothing_stays_live, ("Reset",)),
    Lemma("waits-for-no-other", NOBODY_IS_DEFERRED, "RJ", _nothing, _waits_for_no_other, _EVERY),
)
