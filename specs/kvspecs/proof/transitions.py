"""What properties say of single transitions: formulas about the state before an action and the state after it."""

from collections.abc import Callable
from typing import NamedTuple

from kvspecs.proof.action import Action, Parameters
from kvspecs.proof.logic import Term, all_of, any_of, differ, implies, no, one
from kvspecs.proof.state import State, Vocabulary, in_table, keeps_references, live_load, live_store, publishes_into

REPORTS = ("Report", "DuplicateReport", "ForgeReport", "LoseReport")


class Transition(NamedTuple):
    """For all elements of `sorts` the formula holds of every transition of these actions; none: of all actions.

    `but` names actions that it does not speak of.
    """

    name: str
    serves: str
    sorts: str
    formula: Callable[..., Term]
    actions: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def concerns(self, action: Action) -> bool:
        if any(name in self.but for name in action.of):
            return False
        return not self.actions or any(name in self.actions for name in action.of)

    def of(self, w: Vocabulary, p: Parameters, before: State, after: State) -> Callable[..., Term]:
        """The formula between these two states."""
        return lambda *elements: self.formula(w, p, before, after, *elements)


def device_pinned(w: Vocabulary, p: Parameters, s: State, t: State, d: Term) -> Term:
    lost = all_of(differ(s.device_key(d), w.none), differ(s.device_key(d), t.device_key(d)))
    return implies(lost, s.device_refs(d) == 0)


def host_pinned(w: Vocabulary, p: Parameters, s: State, t: State, h: Term) -> Term:
    lost = all_of(differ(s.host_key(h), w.none), differ(s.host_key(h), t.host_key(h)))
    return implies(lost, s.host_refs(h) == 0)


def host_pinned_if_read(w: Vocabulary, p: Parameters, s: State, t: State, h: Term) -> Term:
    unreadable = all_of(live_load(w, s, p.j), s.job_host(p.j, h), s.failed(p.j, h))
    return any_of(unreadable, host_pinned(w, p, s, t, h))


def ids_go_on(w: Vocabulary, p: Parameters, s: State, t: State, j: Term) -> Term:
    new = all_of(no(in_table(w, s, j)), in_table(w, t, j))
    return all_of(t.next_job() >= s.next_job(), implies(new, all_of(s.next_job() <= j, j < t.next_job())))


def ids_are_given_once(w: Vocabulary, p: Parameters, s: State, t: State, j: Term) -> Term:
    return implies(all_of(no(in_table(w, s, j)), in_table(w, t, j)), no(s.sent(j)))


def completed_when_all_reported(w: Vocabulary, p: Parameters, s: State, t: State, j: Term, x: Term) -> Term:
    completed = all_of(in_table(w, s, j), differ(s.view(j), w.forgotten), no(in_table(w, t, j)))
    return implies(completed, t.reported(j, x))


def unowed_changes_no_table(w: Vocabulary, p: Parameters, s: State, t: State, j: Term, x: Term) -> Term:
    owed = all_of(in_table(w, s, p.j), s.copied(p.j, p.v), no(s.reported(p.j, p.v)), no(s.lost(p.j, p.v)))
    same = all_of(s.view(j) == t.view(j), s.reported(j, x) == t.reported(j, x))
    return any_of(owed, same)


def marks_go_on(w: Vocabulary, p: Parameters, s: State, t: State, x: Term) -> Term:
    return all_of(t.stores_marked(x) >= s.stores_marked(x), t.loads_marked(x) >= s.loads_marked(x))


def _is_stale(w: Vocabulary, p: Parameters, s: State) -> Term:
    """Nobody wants what the job carries; or the worker was heard before."""
    return any_of(differ(s.view(p.j), w.live), s.reported(p.j, p.v), s.lost(p.j, p.v))


def stale_publishes_nothing(w: Vocabulary, p: Parameters, s: State, t: State, d: Term, h: Term) -> Term:
    same = all_of(s.device_key(d) == t.device_key(d), s.host_key(h) == t.host_key(h))
    return implies(_is_stale(w, p, s), same)


def stale_releases_its_own(w: Vocabulary, p: Parameters, s: State, t: State, d: Term) -> Term:
    drains = all_of(s.has_request(p.j), s.phase(s.request(p.j)) == w.draining, s.awaits(s.request(p.j), p.j))
    pins = one(all_of(w.pins, s.job_device(p.j, d))) + one(all_of(drains, s.table(s.request(p.j), d)))
    return implies(_is_stale(w, p, s), _released_at_most(w, p, s, s.device_refs(d), t.device_refs(d), pins))


def stale_releases_its_own_on_host(w: Vocabulary, p: Parameters, s: State, t: State, h: Term) -> Term:
    pins = one(s.job_host(p.j, h))
    return implies(_is_stale(w, p, s), _released_at_most(w, p, s, s.host_refs(h), t.host_refs(h), pins))


def _released_at_most(w: Vocabulary, p: Parameters, s: State, before: Term, after: Term, pins: Term) -> Term:
    once = all_of(s.view(p.j) == w.abandoned, no(s.reported(p.j, p.v)), before - after == pins)
    return any_of(before == after, once)


def live_job_published(w: Vocabulary, p: Parameters, s: State, t: State, d: Term) -> Term:
    carried = all_of(live_load(w, s, p.j), s.job_device(p.j, d), t.device_key(d) == s.carries(p.j, s.host_of(p.j, d)))
    return any_of(s.device_key(d) == t.device_key(d), carried)


def live_job_published_on_host(w: Vocabulary, p: Parameters, s: State, t: State, h: Term) -> Term:
    carried = all_of(live_store(w, s, p.j), s.job_host(p.j, h), t.host_key(h) == s.carries(p.j, h))
    return any_of(s.host_key(h) == t.host_key(h), t.host_key(h) == w.none, carried)


def _failed_in(s: State, p: Parameters, h: Term) -> Term:
    return all_of(s.job_host(p.j, h), s.failed(p.j, h))


def failed_not_published(w: Vocabulary, p: Parameters, s: State, t: State, h: Term) -> Term:
    d = s.device_of(p.j, h)
    same_on_host = any_of(t.host_key(h) == s.host_key(h), t.host_key(h) == w.none)
    same = any_of(t.device_key(d) == s.device_key(d), t.device_key(d) == w.none)
    return implies(_failed_in(s, p, h), all_of(same_on_host, same))


def failed_not_counted(w: Vocabulary, p: Parameters, s: State, t: State, r: Term, h: Term) -> Term:
    d = s.device_of(p.j, h)
    return implies(all_of(_failed_in(s, p, h), t.computed(r, d)), s.computed(r, d))


def unreadable_not_offered(w: Vocabulary, p: Parameters, s: State, t: State, h: Term) -> Term:
    completed = all_of(live_load(w, s, p.j), no(in_table(w, t, p.j)))
    return implies(all_of(completed, _failed_in(s, p, h)), differ(t.host_key(h), s.carries(p.j, h)))


def _left_over(w: Vocabulary, p: Parameters, t: State, d: Term, h: Term, r: Term) -> Term:
    """Something from before the reset can still be hit in a tier that it named, or is pinned."""
    return any_of(
        all_of(p.device, differ(t.device_key(d), w.none)),
        all_of(p.host, differ(t.host_key(h), w.none)),
        t.pins_device(r, d),
        t.pins_host(r, h),
    )


def true_reset(w: Vocabulary, p: Parameters, s: State, t: State, d: Term, h: Term, r: Term, j: Term) -> Term:
    used = all_of(p.invalidate, t.table(r, d))
    publishes = all_of(keeps_references(w, t, j), publishes_into(t, j, p.device, p.host))
    return implies(p.answer, no(any_of(_left_over(w, p, t, d, h, r), publishes, used)))


def false_reset(w: Vocabulary, p: Parameters, s: State, t: State, d: Term, h: Term, r: Term, j: Term) -> Term:
    publishes = all_of(t.view(j) == w.live, publishes_into(t, j, p.device, p.host))
    old = all_of(p.invalidate, t.table(r, d), no(t.outdated(r)))
    return any_of(p.answer, no(any_of(_left_over(w, p, t, d, h, r), publishes, old)))


def false_reset_cause(w: Vocabulary, p: Parameters, s: State, t: State) -> Term:
    return any_of(p.answer, keeps_references(w, t, p.job), all_of(p.device, t.table(p.survivor, p.block)))


def refused(w: Vocabulary, p: Parameters, s: State, t: State, d: Term, h: Term, r: Term, j: Term) -> Term:
    return all_of(
        s.device_refs(d) == t.device_refs(d),
        s.device_key(d) == t.device_key(d),
        s.device_queued(d) == t.device_queued(d),
        s.host_refs(h) == t.host_refs(h),
        s.host_key(h) == t.host_key(h),
        s.host_queued(h) == t.host_queued(h),
        s.phase(r) == t.phase(r),
        s.view(j) == t.view(j),
    )


_STALE = "stale-completions-change-nothing"
_DROPPED = "dropped-jobs-publish-nothing"
_FAILED = "failed-copies-are-never-published"
_IDS = "ids-are-never-reused"
_EVICT = "pinned-is-not-evicted"
_AGREE = "workers-agree"
_REFUSED = "refused-changes-nothing"

TRANSITIONS: tuple[Transition, ...] = (
    Transition("pinned-device-key-stays", _EVICT, "D", device_pinned, but=("Reset",)),
    Transition("pinned-host-key-stays", _EVICT, "H", host_pinned, but=("Reset", "Report")),
    Transition("pinned-host-key-stays-if-it-is-read", _EVICT, "H", host_pinned_if_read, ("Report",)),
    Transition("ids-go-on", _IDS, "J", ids_go_on),
    Transition("ids-are-given-once", _IDS, "J", ids_are_given_once),
    Transition("completed-when-all-reported", _AGREE, "JW", completed_when_all_reported, REPORTS),
    Transition("unowed-changes-no-table", _AGREE, "JW", unowed_changes_no_table, REPORTS),
    Transition("marks-go-on", _AGREE, "W", marks_go_on, ("ReportMark", "RepeatMark")),
    Transition("stale-publishes-nothing", _STALE, "DH", stale_publishes_nothing, REPORTS),
    Transition("stale-releases-its-own", _STALE, "D", stale_releases_its_own, REPORTS),
    Transition("stale-releases-its-own-on-host", _STALE, "H", stale_releases_its_own_on_host, REPORTS),
    Transition("live-job-published", _DROPPED, "D", live_job_published, REPORTS),
    Transition("live-job-published-on-host", _DROPPED, "H", live_job_published_on_host, REPORTS),
    Transition("failed-is-not-published", _FAILED, "H", failed_not_published, REPORTS),
    Transition("failed-is-not-counted", _FAILED, "RH", failed_not_counted, REPORTS),
    Transition("unreadable-is-not-offered", _FAILED, "H", unreadable_not_offered, REPORTS),
    Transition("true-reset", "true-reset-serves-nothing-old", "DHRJ", true_reset, ("Reset",)),
    Transition("false-reset", "false-reset-serves-nothing-old", "DHRJ", false_reset, ("Reset",)),
    Transition("false-reset-cause", "false-reset-has-a-cause", "", false_reset_cause, ("Reset",)),
    Transition("refused-free", _REFUSED, "DHRJ", refused, ("FreeTwice",)),
    Transition("refused-forgery", _REFUSED, "DHRJ", refused, ("ForgeReport",)),
)
