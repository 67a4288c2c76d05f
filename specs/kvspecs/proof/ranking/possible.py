"""What may happen while something is left: which action, with which choices. Each lemma shows the action's guard."""

from collections.abc import Mapping
from typing import Any

from kvspecs.proof.action import Clause, Parameters, holds
from kvspecs.proof.actions import ALL
from kvspecs.proof.logic import Term, all_of, any_of, differ, implies, no, pick
from kvspecs.proof.ranking.choices import publishable
from kvspecs.proof.ranking.lemma import Lemma, Situation
from kvspecs.proof.ranking.theorems import (
    JOBS_LEAVE,
    LOADS_ARE_LAUNCHED,
    NOBODY_IS_DEFERRED,
    RESETS_SUCCEED,
    WORKERS_DRAIN,
)
from kvspecs.proof.state import (
    State,
    Vocabulary,
    computing,
    in_table,
    is_full,
    keeps_references,
    live_load,
    live_store,
    marked,
    pending,
)

_ACTIONS = {action.name: action for action in ALL}


def guard_of(c: Situation, name: str, values: Mapping[str, Any]) -> tuple[Clause, ...]:
    """What has to hold for an action to happen with these parameters."""
    return _ACTIONS[name].effect(c.w, c.before, Parameters(values)).guard


def copying(j: Term, x: Term) -> dict[str, Any]:
    """The parameters of a copy of which nothing fails: whether it may run does not depend on that."""
    return {"j": j, "v": x, "fails": lambda h: False}


# A worker that has something left to run, of launch n or before, may run something that is left.


def _left_to_run(c: Situation, x: Term, g: Term, j: Term, n: Term) -> tuple[Clause, ...]:
    s = c.before
    step = all_of(computing(s, g, x), s.step_at(g) <= n)
    return (holds("left", any_of(step, all_of(pending(s, j, x), s.sent_at(j) <= n))),)


def _turn_of_compute(c: Situation, x: Term) -> Term:
    s, g, j = c.before, c.choose("oldest step", x), c.choose("oldest copy", x)
    return all_of(computing(s, g, x), any_of(no(pending(s, j, x)), s.step_at(g) <= s.sent_at(j)))


def _compute_runs(c: Situation, x: Term, g0: Term, j0: Term, n: Term) -> tuple[Clause, ...]:
    s, g = c.before, c.choose("oldest step", x)
    other = c.choose("other to run", g, x)
    last = all_of(s.handled(g), no(all_of(differ(other, x), no(s.ran(g, other)))))
    guard = guard_of(c, "RunCompute", {"g": g, "v": x, "last": last, "other": other})
    return tuple(
        Clause(clause.name, clause.sorts, _if(_turn_of_compute(c, x), clause.formula))
        for clause in (*guard, holds("is-left", s.step_at(g) <= n))
    )


def _copy_runs(name: str, load: bool) -> Any:
    def shown(c: Situation, x: Term, g0: Term, j0: Term, n: Term) -> tuple[Clause, ...]:
        s, j = c.before, c.choose("oldest copy", x)
        turn = all_of(no(_turn_of_compute(c, x)), s.is_load(j) if load else no(s.is_load(j)))
        guard = (*guard_of(c, name, copying(j, x)), holds("is-left", s.sent_at(j) <= n))
        return tuple(Clause(clause.name, clause.sorts, _if(turn, clause.formula)) for clause in guard)

    return shown


def _if(premise: Term, formula: Any) -> Any:
    return lambda *elements: implies(premise, formula(*elements))


# A launched job of which no report is lost: somebody owes one; who has copied it may report it.


def launched(c: Situation, j: Term) -> Term:
    return all_of(in_table(c.w, c.before, j), c.before.sent(j))


def owed(w: Vocabulary, s: State, j: Term, x: Term) -> Term:
    """The worker has copied the job and has not reported it, and the report is not lost."""
    return all_of(in_table(w, s, j), s.sent(j), s.copied(j, x), no(s.reported(j, x)), no(s.lost(j, x)))


def _launched_and_nothing_lost(c: Situation, j: Term) -> tuple[Clause, ...]:
    return (holds("launched", launched(c, j)), Clause("nothing-lost", "W", lambda x: no(c.before.lost(j, x))))


def _somebody_is_to_do(c: Situation, j: Term) -> tuple[Clause, ...]:
    x = c.before.owes(j)
    return (holds("copies-or-reports", any_of(pending(c.before, j, x), owed(c.w, c.before, j, x))),)


def _owed_report(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    return (holds("owed", owed(c.w, c.before, j, x)),)


def _is_heard(c: Situation, j: Term, x: Term) -> Term:
    """The report is about the job alone, or a mark covers it: otherwise that mark is to be heard first."""
    return any_of(no(c.w.marks), marked(c.before, j, x))


def _others_have_reported(c: Situation, j: Term, x: Term) -> Term:
    other = c.choose("other to report", j, x)
    return no(all_of(differ(other, x), no(c.before.reported(j, other))))


def _reports(c: Situation, j: Term, x: Term, name: str, case: Term, values: Mapping[str, Any]) -> tuple[Clause, ...]:
    guard = guard_of(c, name, {"j": j, "v": x, **values})
    case = all_of(case, _is_heard(c, j, x))
    return tuple(Clause(f"{name} {clause.name}", clause.sorts, _if(case, clause.formula)) for clause in guard)


def _one_of_the_cases(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    """Every report that is owed is of one of the cases, and each may happen."""
    w, s = c.w, c.before
    last, kept = _others_have_reported(c, j, x), keeps_references(w, s, j)
    other, unheard = c.choose("other to report", j, x), c.choose("other unheard", j, x)
    settled = no(all_of(differ(unheard, x), no(s.reported(j, unheard)), no(s.lost(j, unheard))))
    forgotten = s.view(j) == w.forgotten
    bad = c.choose("failed pair", j)
    failed = all_of(s.job_host(j, bad), s.failed(j, bad))
    values: dict[str, Any] = {"last": settled, "other": unheard}
    cases = [
        *_reports(c, j, x, "ReportPart", all_of(kept, no(last)), {"other": other}),
        *_reports(c, j, x, "CompleteAbandoned", all_of(last, s.view(j) == w.abandoned), {}),
        *_reports(c, j, x, "CompleteStore", all_of(last, live_store(w, s, j)), _published_by_store(c, j)),
        *_reports(c, j, x, "CompleteLoad", all_of(last, live_load(w, s, j), no(failed)), _published_by_load(c, j)),
        *_reports(c, j, x, "CompleteFailedLoad", all_of(last, live_load(w, s, j), failed), _brought_by_load(c, j)),
    ]
    if not w.pins:
        cases += _reports(c, j, x, "ReportForgotten", forgotten, values)
    mark = guard_of(c, "HearMark", {"v": x, "load": s.is_load(j), "until": j + 1})
    cases += [Clause(f"HearMark {each.name}", each.sorts, _if(no(_is_heard(c, j, x)), each.formula)) for each in mark]
    return (*cases, holds("a-case", any_of(kept, forgotten)))


def _published_by_store(c: Situation, j: Term) -> dict[str, Any]:
    s = c.before

    def key(h: Term) -> Term:
        return s.carries(j, h)

    def absent(h: Term) -> Term:
        return differ(s.host_key(c.choose("host hit", key(h))), key(h))

    def publish(h: Term) -> Term:
        return all_of(s.job_host(j, h), no(s.failed(j, h)), absent(h), h == c.choose("stored as", j, key(h)))

    def at(h: Term) -> Term:
        return pick(absent(h), c.choose("stored as", j, key(h)), c.choose("host hit", key(h)))

    return {"publish": publish, "at": at}


def _published_by_load(c: Situation, j: Term) -> dict[str, Any]:
    s = c.before

    def key(d: Term) -> Term:
        return s.carries(j, s.host_of(j, d))

    def absent(d: Term) -> Term:
        return differ(s.device_key(c.choose("device hit", key(d))), key(d))

    def publish(d: Term) -> Term:
        return all_of(_is_brought(c, j, d), absent(d), d == c.choose("loaded as", j, key(d)))

    def at(d: Term) -> Term:
        return pick(absent(d), c.choose("loaded as", j, key(d)), c.choose("device hit", key(d)))

    return {"publish": publish, "at": at}


def _is_brought(c: Situation, j: Term, d: Term) -> Term:
    s = c.before
    return all_of(s.job_device(j, d), no(s.failed(j, s.host_of(j, d))))


def _brought_by_load(c: Situation, j: Term) -> dict[str, Any]:
    """All that did not fail; every lookup is given up."""
    counts = c.before.counts
    values = {"brought": lambda d: _is_brought(c, j, d), "again": lambda r: True}
    return values | {"pins": counts.looked_up, "host_pins": counts.host_looked_up} | _published_by_load(c, j)


# A queued load: the output that is awaited is or will be there; unless as many are as may be, a step may be launched.


def _queued(c: Situation, j: Term, *others: Term) -> tuple[Clause, ...]:
    return (holds("queued", all_of(in_table(c.w, c.before, j), no(c.before.sent(j)))),)


def _output_comes(c: Situation, j: Term, x: Term) -> tuple[Clause, ...]:
    s = c.before
    guard = guard_of(c, "HandleOutput", _published_by_output(c, x))
    there = all_of(s.awaited() >= 0, s.ran(s.awaited(), x))
    computed = implies(all_of(s.awaited() >= 0, no(there)), computing(s, s.awaited(), x))
    return (
        *(Clause(clause.name, clause.sorts, _if(there, clause.formula)) for clause in guard),
        holds("computed-or-to-compute", computed),
    )


def _published_by_output(c: Situation, x: Term) -> dict[str, Any]:
    s, g = c.before, c.before.awaited()
    other = c.choose("other to run", g, x)

    def key(d: Term) -> Term:
        return s.step_key(g, d)

    def absent(d: Term) -> Term:
        return differ(s.device_key(c.choose("device hit", key(d))), key(d))

    def publish(d: Term) -> Term:
        return all_of(publishable(s, d), absent(d), d == c.choose("computed as", key(d)))

    def at(d: Term) -> Term:
        return pick(absent(d), c.choose("computed as", key(d)), c.choose("device hit", key(d)))

    return {"v": x, "last": s.ran(g, other), "other": other, "publish": publish, "at": at}


def _step_is_launched(c: Situation, j: Term) -> tuple[Clause, ...]:
    """Without compute and stores; under fencing it waits for all that is on its way."""
    w, s = c.w, c.before
    newest, waited = c.choose("last step"), c.choose("last waited for")
    last = pick(s.in_steps(newest), newest, -1)
    beyond = pick(s.waits_for_step(waited) > last, s.waits_for_step(waited), last)
    values = {
        **_NOTHING,
        "compute": False,
        "g": beyond + 1,
        "last": last,
        "user": lambda d: s.writer(0, d),
        "source": lambda h: s.device_of(0, h),
        "key": s.host_key,
        "source_owner": lambda h: s.request(0),
        "job": lambda h: 0,
        "stored_in": lambda d: s.host_of(0, d),
        "owner": s.request,
        "until": s.next_job(),
        "flush": lambda i: all_of(in_table(w, s, i), s.sent(i)),
    }
    may = no(is_full(w, s))
    guard = guard_of(c, "Launch", values)
    return tuple(Clause(clause.name, clause.sorts, _if(may, clause.formula)) for clause in guard)


_NOTHING: Mapping[str, Any] = {
    name: lambda *elements: False for name in ("computes", "part", "used", "stored", "is_source", "owned")
}


# A reset after a drain, and a request that waits for nothing any more.


def in_flight(c: Situation, j: Term) -> Term:
    return all_of(keeps_references(c.w, c.before, j), c.before.sent(j))


def _drained(c: Situation, device: Term, host: Term, invalidate: Term, r: Term, d: Term, j: Term) -> tuple[Clause, ...]:
    """Nothing is in flight. A load that is queued is cancelled if the device is reset; otherwise there is none."""

    def queued(i: Term) -> Term:
        return all_of(in_table(c.w, c.before, i), no(c.before.sent(i)))

    return (
        holds("names-a-tier", any_of(device, host)),
        holds("invalidates-both", implies(invalidate, all_of(device, host))),
        Clause("nothing-in-flight", "J", lambda i: no(in_flight(c, i))),
        Clause("nothing-queued", "J", lambda i: any_of(device, no(queued(i)))),
    )


def _answers_true(
    c: Situation, device: Term, host: Term, invalidate: Term, r: Term, d: Term, j: Term
) -> tuple[Clause, ...]:
    """Without survivors: a reset of the host has none, and preempts nobody."""
    s = c.before

    def heard(i: Term) -> Term:
        return any_of(s.reported(i, c.choose("unheard", i)), s.lost(i, c.choose("unheard", i)))

    values = {
        "device": device,
        "host": host,
        "invalidate": invalidate,
        "keep": no(device),
        "job": j,
        "survivor": r,
        "block": d,
        "settled": heard,
        "unheard": lambda i: c.choose("unheard", i),
        "dropped": s.counts.launched,
        "host_dropped": s.counts.host_launched,
    }
    lies = guard_of(c, "Reset", {**values, "answer": False})
    return (
        *guard_of(c, "Reset", {**values, "answer": True}),
        holds("may-not-say-no", no(all_of(*(clause.formula() for clause in lies if not clause.sorts)))),
    )


def _own_job(c: Situation, r: Term, j: Term) -> tuple[Clause, ...]:
    return (holds("awaits", c.before.awaits(r, j)),)


def _own_job_is_there(c: Situation, r: Term, j: Term) -> tuple[Clause, ...]:
    w, s = c.w, c.before
    return (
        holds("in-table", in_table(w, s, j)),
        holds("launched-if-it-waits", implies(s.phase(r) == w.waiting, s.sent(j))),
    )


def _awaits_nothing(c: Situation, r: Term) -> tuple[Clause, ...]:
    s = c.before
    begun = any_of(s.phase(r) == c.w.waiting, s.phase(r) == c.w.loading)
    return (holds("begun", begun), Clause("awaits-nothing", "J", lambda j: no(s.awaits(r, j))))


def _goes_on(c: Situation, r: Term) -> tuple[Clause, ...]:
    w, s = c.w, c.before
    nothing: dict[str, Any] = {
        "hit": lambda d: False,
        "host_hit": lambda h: False,
        "at": lambda k: s.found_device(r, k),
        "host_at": lambda k: s.found_host(r, k),
    }
    return tuple(
        Clause(f"{name} {clause.name}", clause.sorts, _if(s.phase(r) == phase, clause.formula))
        for name, values, phase in (("Lookup", nothing, w.waiting), ("Wake", {}, w.loading))
        for clause in guard_of(c, name, {"r": r, **values})
    )


def _first_of(c: Situation, x: Term, *others: Term) -> tuple[tuple[str, Term], ...]:
    step = c.choose("oldest step", x)
    return (("S", step), ("J", c.choose("oldest copy", x)), ("W", c.choose("other to run", step, x)))


def _others(c: Situation, j: Term, x: Term) -> tuple[tuple[str, Term], ...]:
    return (("W", c.choose("other to report", j, x)), ("W", c.choose("other unheard", j, x)))


def _behind(c: Situation, j: Term, x: Term) -> tuple[tuple[str, Term], ...]:
    return (("W", c.choose("other to run", c.before.awaited(), x)),)


_RUNS = ("oldest step", "oldest copy", "other to run")

LEMMAS: tuple[Lemma, ...] = (
    Lemma("a-compute-may-run", WORKERS_DRAIN, "WSJZ", _left_to_run, _compute_runs, uses=_RUNS, looks_at=_first_of),
    Lemma(
        "a-store-may-run",
        WORKERS_DRAIN,
        "WSJZ",
        _left_to_run,
        _copy_runs("RunStore", load=False),
        uses=_RUNS,
        looks_at=_first_of,
    ),
    Lemma(
        "a-load-may-run",
        WORKERS_DRAIN,
        "WSJZ",
        _left_to_run,
        _copy_runs("RunLoad", load=True),
        uses=_RUNS,
        looks_at=_first_of,
    ),
    Lemma("somebody-copies-or-reports", JOBS_LEAVE, "J", _launched_and_nothing_lost, _somebody_is_to_do),
    Lemma(
        "a-report-may-come",
        JOBS_LEAVE,
        "JW",
        _owed_report,
        _one_of_the_cases,
        uses=("other to report", "other unheard", "host hit", "device hit", "failed pair", "loaded as", "stored as"),
        terms=(
            ("JH", "K", lambda c, j, h: c.before.carries(j, h)),
            ("JD", "K", lambda c, j, d: c.before.carries(j, c.before.host_of(j, d))),
            ("JD", "H", lambda c, j, d: c.before.host_of(j, d)),
        ),
        looks_at=_others,
    ),
    Lemma(
        "the-output-comes",
        LOADS_ARE_LAUNCHED,
        "JW",
        _queued,
        _output_comes,
        uses=("other to run", "device hit", "computed as"),
        terms=(("D", "K", lambda c, d: c.before.step_key(c.before.awaited(), d)),),
        looks_at=_behind,
    ),
    Lemma(
        "a-step-may-be-launched",
        LOADS_ARE_LAUNCHED,
        "J",
        _queued,
        _step_is_launched,
        uses=("last step", "last waited for"),
    ),
    Lemma("the-reset-answers-true", RESETS_SUCCEED, "BBBRDJ", _drained, _answers_true, uses=("unheard",)),
    Lemma("its-job-is-on-its-way", NOBODY_IS_DEFERRED, "RJ", _own_job, _own_job_is_there),
    Lemma("it-goes-on", NOBODY_IS_DEFERRED, "R", _awaits_nothing, _goes_on),
)
