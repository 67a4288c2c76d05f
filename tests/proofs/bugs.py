"""Bugs of the specification: one guard or one update of an action, wrong. Each fails an obligation that is named here.

`python -m tests.proofs.bugs` runs each parametrically and at the finite scope, and prints a line for each; with names
of bugs, or of actions, those alone.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.action import Action, Effect, Parameters
from kvspecs.proof.actions import actions_of
from kvspecs.proof.finite import FiniteInduction
from kvspecs.proof.logic import all_of, any_of, implies, no, one, pick
from kvspecs.proof.parametric import Induction
from kvspecs.proof.state import State, Vocabulary, awaiting, publishes_into, through
from kvspecs.proof.symbols import VIEWS

Alter = Callable[[Vocabulary, State, Parameters, Effect], Effect]

BOTH = DISCIPLINES
PINNING: tuple[Discipline, ...] = ("pinning",)
FENCING: tuple[Discipline, ...] = ("fencing",)


class Bug(NamedTuple):
    """One wrong line. `fails` is the obligation that finds it; empty: none does, and `why` says why the line is not
    needed for safety."""

    name: str
    disciplines: tuple[Discipline, ...]
    action: str
    alter: Alter
    fails: str = ""
    why: str = ""


def without(clause: str) -> Alter:
    """The guard lacks a clause."""

    def alter(w: Vocabulary, s: State, p: Parameters, effect: Effect) -> Effect:
        kept = tuple(c for c in effect.guard if c.name != clause)
        assert len(kept) < len(effect.guard), clause
        return replace(effect, guard=kept)

    return alter


def instead(clause: str, formula: Callable[[State, Parameters], Callable[..., Any]]) -> Alter:
    """The guard has another clause of that name: a function of state and parameters."""

    def alter(w: Vocabulary, s: State, p: Parameters, effect: Effect) -> Effect:
        changed = tuple(c._replace(formula=formula(s, p)) if c.name == clause else c for c in effect.guard)
        assert clause in [c.name for c in changed], clause
        return replace(effect, guard=changed)

    return alter


def untouched(*tables: str) -> Alter:
    """The action forgets to change these tables."""

    def alter(w: Vocabulary, s: State, p: Parameters, effect: Effect) -> Effect:
        return effect.then(**{name: getattr(s, name) for name in tables})

    return alter


def changing(**tables: Callable[[Vocabulary, State, Parameters, State], Any]) -> Alter:
    """The action changes tables in another way: each is a function of the state before, and of the one after."""

    def alter(w: Vocabulary, s: State, p: Parameters, effect: Effect) -> Effect:
        return effect.then(**{name: made(w, s, p, effect.after) for name, made in tables.items()})

    return alter


def _unpinned_targets(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda d: t.device_refs(d) - one(p.target(d))


def _freed_in_flight(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda d: t.device_refs(d) - s.counts.launched(d)


def _freed_on_host_in_flight(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda h: t.host_refs(h) - s.counts.host_launched(h)


def _published_though_abandoned(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda h: pick(all_of(no(s.is_load(p.j)), s.job_host(p.j, h)), s.carries(p.j, h), s.host_key(h))


def _failed_on_the_last_worker(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda i, h: pick(i == p.j, all_of(s.job_host(p.j, h), p.fails(h)), s.failed(i, h))


def _reads_what_is_computed(s: State, p: Parameters) -> Callable[..., Any]:
    return lambda r, d: implies(all_of(p.computes(r), s.table(r, d), s.computed(r, d)), p.part(r, d))


def _is_in_both(s: State, r: Any, d: Any) -> Any:
    return all_of(*(through(s, g, r, d) for g in awaiting(s)))


def _one_more(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda x: t.stores_marked(x) + one(all_of(x == p.v, no(p.load)))


def _for_all_workers(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda x: t.loads_marked(p.v)


def _for_both_streams(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda x: pick(all_of(x == p.v, p.until > s.stores_marked(x)), p.until, s.stores_marked(x))


def _as_it_comes(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda x: pick(all_of(x == p.v, no(p.load)), p.until, s.stores_marked(x))


def _in_table_alone(s: State, p: Parameters) -> Callable[..., Any]:
    return lambda: all_of(s.copied(p.j, p.v), no(s.reported(p.j, p.v)), no(s.lost(p.j, p.v)))


def _of_the_other_tier(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    """What would publish in the tier that is not reset is dropped, and the rest goes on."""
    dropped = pick(w.pins, w.abandoned, w.forgotten)
    return lambda j: pick(all_of(s.view(j) == w.live, publishes_into(s, j, p.host, p.device)), dropped, s.view(j))


def _nothing_awaited(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda r, j: False


def _all_queued_freed(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda h: t.host_refs(h) - pick(p.device, 0, s.counts.host_queued(h))


def _all_stores_freed(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda h: t.host_refs(h) + p.host_dropped(h) - s.counts.host_launched(h)


def _nobody_drains(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda r: pick(s.phase(r) == w.draining, pick(s.returns(r), w.waiting, w.done), t.phase(r))


def _nobody_loads(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda r: pick(s.phase(r) == w.loading, w.waiting, t.phase(r))


def _cleared_with_device(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda h: pick(p.device, w.none, s.host_key(h))


def _cleared_with_host(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda d: pick(p.host, w.none, s.device_key(d))


def _no_job_in_flight(s: State, p: Parameters) -> Callable[..., Any]:
    live, abandoned, *_ = VIEWS
    return lambda j: implies(p.answer, no(all_of(s.sent(j), any_of(s.view(j) == live, s.view(j) == abandoned))))


def _any_survivor_is_a_cause(s: State, p: Parameters) -> Callable[..., Any]:
    return lambda: any_of(p.answer, all_of(p.keep, s.table(p.survivor, p.block)))


def _kept_for_finders(w: Vocabulary, s: State, p: Parameters, t: State) -> Any:
    return lambda h: t.host_refs(h) + p.host_pins(h)


BUGS: tuple[Bug, ...] = (
    # what requests take, and let go
    Bug("grow-takes-held-blocks", BOTH, "Grow", without("fresh-is-free"), "pinned-device-key-stays"),
    Bug("grow-keeps-key", BOTH, "Grow", untouched("device_key"), "cached-as-it-stands"),
    Bug("grow-without-key", BOTH, "Grow", without("fresh-has-key"), "table-phase"),
    Bug("grow-while-waiting", BOTH, "Grow", without("runs"), "table-phase"),
    Bug("lookup-does-not-pin", BOTH, "Lookup", untouched("device_refs"), "device-owned"),
    Bug("lookup-does-not-pin-on-host", BOTH, "Lookup", untouched("host_refs"), "host-owned"),
    Bug("lookup-pins-and-leaves-it-in-queue", BOTH, "Lookup", untouched("device_queued"), "device-queue"),
    Bug("lookup-hits-what-is-not-cached", BOTH, "Lookup", without("hit-is-cached"), "pinned-is-cached"),
    Bug("lookup-with-gap", BOTH, "Lookup", without("device-prefix"), "device-prefix"),
    Bug("lookup-with-gap-on-host", BOTH, "Lookup", without("host-prefix"), "host-prefix"),
    Bug("lookup-of-host-before-device", BOTH, "Lookup", without("host-after-device"), "host-after-device"),
    Bug("release-forgets-refs", BOTH, "ReleaseLookup", untouched("device_refs", "device_queued"), "device-owned"),
    Bug("abort-leaks-pins", BOTH, "AbortWaiting", untouched("host_refs", "host_queued"), "host-owned"),
    Bug("admit-hits-what-is-not-cached", BOTH, "Admit", without("hit-is-cached"), "computed-in-table"),
    Bug("admit-takes-held-blocks", BOTH, "Admit", without("fresh-is-free"), "device-owned"),
    Bug("admit-counts-fresh-as-computed", BOTH, "Admit", untouched("computed"), "cached-as-it-stands"),
    Bug("admit-leaks-unused-pins", BOTH, "Admit", untouched("host_refs"), "host-owned"),
    Bug(
        "load-does-not-own-its-target",
        PINNING,
        "AdmitWithLoad",
        changing(device_refs=_unpinned_targets),
        "device-owned",
    ),
    Bug("load-does-not-own-its-source", BOTH, "AdmitWithLoad", untouched("host_refs"), "host-owned"),
    Bug("load-id-is-given-again", BOTH, "AdmitWithLoad", untouched("next_job"), "issued"),
    Bug(
        "load-of-what-is-not-cached",
        BOTH,
        "AdmitWithLoad",
        without("loaded-is-cached"),
        "",
        "what is loaded goes into a block that has its key",
    ),
    Bug("load-into-another-block", BOTH, "AdmitWithLoad", without("loaded-goes-into-fresh"), "pairs-from-host"),
    Bug("load-into-shared-block", BOTH, "AdmitWithLoad", without("target-is-loaded"), "load-fills-table"),
    Bug("admitted-with-jobs-outstanding", FENCING, "AdmitWithLoad", without("awaits-nothing"), "awaited-job"),
    Bug("wake-before-load", BOTH, "Wake", without("awaits-nothing"), "awaited-job"),
    Bug("finish-in-launched-step", BOTH, "Finish", untouched("left"), "", "the guard keeps it out of launched steps"),
    Bug("preempt-frees-under-step", BOTH, "LeaveRunning", untouched("left"), "computes-for-running"),
    Bug(
        "preempt-frees-what-step-computes",
        BOTH,
        "LeaveRunning",
        changing(device_refs=lambda w, s, p, t: lambda d: s.device_refs(d) - one(s.table(p.r, d))),
        "device-owned",
    ),
    Bug("load-stays-live", PINNING, "LeaveLoadInFlight", untouched("view"), "load-is-awaited"),
    Bug("load-stays-live-while-draining", FENCING, "LeaveLoadInFlight", untouched("view"), "awaited-job"),
    Bug("cancelled-load-leaks", BOTH, "LeaveQueuedLoad", untouched("host_refs", "host_queued"), "host-owned"),
    Bug("launched-load-is-cancelled", BOTH, "LeaveQueuedLoad", without("never-launched"), "work-is-in-table"),
    # launches
    Bug("launch-reuses-step-id", BOTH, "Launch", without("last-is-last"), "awaited-is-last"),
    Bug("store-into-held-block", BOTH, "Launch", without("stored-is-free"), "pinned-host-key-stays"),
    Bug("store-of-another-key", BOTH, "Launch", without("source-holds-key"), "store-reads"),
    Bug("stored-twice-in-one-launch", BOTH, "Launch", without("stored-once-in-launch"), "stored-once"),
    Bug("stored-while-on-its-way", BOTH, "Launch", without("not-on-its-way"), "stored-once"),
    Bug("stored-while-on-host", BOTH, "Launch", without("not-on-host"), "stored-not-on-host"),
    Bug("store-keeps-key-of-its-target", BOTH, "Launch", untouched("host_key"), "store-not-cached"),
    Bug("store-does-not-own-its-target", BOTH, "Launch", untouched("host_refs"), "host-owned"),
    Bug("store-does-not-own-its-source", PINNING, "Launch", untouched("device_refs"), "device-owned"),
    Bug("store-for-nobody-running", FENCING, "Launch", without("owner-runs"), "awaited-job"),
    Bug("launch-does-not-fence-compute", FENCING, "Launch", without("store-before-compute"), "store-and-compute"),
    Bug("launch-does-not-fence-load", FENCING, "Launch", without("store-before-load"), "store-and-load"),
    Bug("launch-does-not-fence-stale-load", FENCING, "Launch", without("load-before-compute"), "load-and-compute"),
    Bug("launch-does-not-fence-source", FENCING, "Launch", without("load-before-store-of-it"), "store-and-load"),
    Bug("launch-does-not-fence-host", FENCING, "Launch", without("load-before-store"), "host-store-and-load"),
    Bug(
        "store-does-not-wait-for-compute",
        BOTH,
        "Launch",
        changing(
            waits_for_step=lambda w, s, p, t: (
                lambda j: pick(all_of(s.next_job() <= j, j < p.until), p.last, t.waits_for_step(j))
            )
        ),
        "stored-after",
    ),
    # workers
    Bug("compute-overtakes-compute", BOTH, "RunCompute", without("oldest-of-stream"), "compute-order"),
    Bug("compute-does-not-wait-for-flush", FENCING, "RunCompute", without("waits-for-copies"), "store-reads"),
    Bug("store-overtakes-store", BOTH, "RunStore", without("oldest-of-stream"), "stream-order"),
    Bug("store-before-compute", BOTH, "RunStore", without("waits-for-compute"), "store-has-written"),
    Bug("load-overtakes-load", BOTH, "RunLoad", without("oldest-of-stream"), "stream-order"),
    Bug("load-before-last-reader", BOTH, "RunLoad", without("waits-for-compute"), "copied-after-steps"),
    Bug("load-does-not-wait-for-flush", FENCING, "RunLoad", without("waits-for-copies"), "store-reads"),
    # completions
    Bug("store-completed-by-one-worker", BOTH, "CompleteStore", without("reported-by-all-others"), "cached-on-host"),
    Bug(
        "load-completed-by-one-worker",
        BOTH,
        "CompleteLoad",
        without("reported-by-all-others"),
        "completed-when-all-reported",
    ),
    Bug("completion-counted-twice", BOTH, "CompleteStore", without("owed"), "stale-releases-its-own-on-host"),
    Bug("abandoned-store-publishes", PINNING, "CompleteStore", without("live-store"), "stale-publishes-nothing"),
    Bug("load-publishes-a-second-copy", BOTH, "CompleteLoad", without("publishes-absent"), "device-copies"),
    Bug("load-publishes-anything", BOTH, "CompleteLoad", without("publishes-eligible"), "live-job-published"),
    Bug("store-leaks", BOTH, "CompleteStore", untouched("host_refs", "host_queued"), "host-owned"),
    Bug(
        "abandoned-publishes",
        PINNING,
        "CompleteAbandoned",
        changing(host_key=_published_though_abandoned),
        "stale-publishes-nothing",
    ),
    Bug("abandoned-leaks", BOTH, "CompleteAbandoned", untouched("host_refs", "host_queued"), "host-owned"),
    Bug("drained-keeps-its-blocks", FENCING, "CompleteAbandoned", untouched("table"), "table-phase"),
    Bug("forgotten-leaves-early", FENCING, "ReportForgotten", without("last-is-last"), "work-is-in-table"),
    Bug(
        "unowed-report-releases",
        BOTH,
        "ReportUnowed",
        changing(host_refs=lambda w, s, p, t: lambda h: s.host_refs(h) - one(s.job_host(p.j, h))),
        "stale-releases-its-own-on-host",
    ),
    Bug(
        "lost-report-completes",
        BOTH,
        "LoseReport",
        changing(view=lambda w, s, p, t: lambda i: pick(i == p.j, w.gone, s.view(i))),
        "completed-when-all-reported",
    ),
    Bug("output-publishes-a-second-copy", BOTH, "HandleOutput", without("publishes-absent"), "device-copies"),
    Bug("output-publishes-what-left", BOTH, "HandleOutput", without("publishes-eligible"), "cached-on-device"),
    Bug("output-keeps-what-left", BOTH, "HandleOutput", untouched("device_refs", "device_queued"), "device-owned"),
    Bug("output-computes-nothing", BOTH, "HandleOutput", untouched("computed"), "cached-as-it-stands"),
    # a step ahead of the output of another
    Bug("third-step-is-launched", BOTH, "Launch", without("output-is-handled"), "awaited-is-last"),
    Bug(
        "computes-again-what-is-on-its-way",
        BOTH,
        "Launch",
        instead("reads-what-is-computed", _reads_what_is_computed),
        "shares-agree",
    ),
    Bug(
        "step-ahead-is-left-without-references",
        BOTH,
        "LeaveRunning",
        changing(device_refs=lambda w, s, p, t: lambda d: t.device_refs(d) - one(_is_in_both(s, p.r, d))),
        "device-owned",
    ),
    Bug(
        "request-leaves-the-older-step-alone",
        BOTH,
        "LeaveRunning",
        changing(left=lambda w, s, p, t: lambda g, r: pick(g == s.ahead(), s.left(g, r), t.left(g, r))),
        "computes-for-running",
    ),
    Bug(
        "output-forgets-the-step-ahead",
        BOTH,
        "HandleOutput",
        changing(awaited=lambda w, s, p, t: lambda: -1),
        "awaited-is-last",
    ),
    Bug(
        "output-releases-what-the-step-ahead-holds",
        BOTH,
        "HandleOutput",
        changing(device_refs=lambda w, s, p, t: lambda d: t.device_refs(d) - s.counts.left_ahead(d)),
        "device-owned",
    ),
    Bug(
        "reset-leaves-the-step-ahead-without-references",
        BOTH,
        "Reset",
        changing(device_refs=lambda w, s, p, t: lambda d: t.device_refs(d) - pick(p.keep, 0, s.counts.twice(d))),
        "device-owned",
    ),
    # marks
    Bug("mark-beyond-what-is-copied", BOTH, "HearMark", without("is-true"), "marks-are-true"),
    Bug("mark-of-jobs-to-come", BOTH, "HearMark", without("issued"), "marks-are-issued"),
    Bug("mark-covers-one-more", BOTH, "HearMark", changing(stores_marked=_one_more), "marks-are-true"),
    Bug("mark-of-one-for-all-workers", BOTH, "HearMark", changing(loads_marked=_for_all_workers), "marks-are-true"),
    Bug("mark-of-loads-for-stores", BOTH, "HearMark", changing(stores_marked=_for_both_streams), "marks-are-true"),
    Bug("older-mark-takes-back", BOTH, "HearMark", changing(stores_marked=_as_it_comes), "marks-go-on"),
    Bug("credited-beyond-the-mark", BOTH, "ReportPart", instead("owed", _in_table_alone), "reported-is-marked"),
    # copies that fail
    Bug("failed-store-is-not-noted", BOTH, "RunStore", untouched("failed"), "store-has-written"),
    Bug("failed-load-is-not-noted", BOTH, "RunLoad", untouched("failed"), "load-has-written"),
    Bug(
        "failure-of-another-worker-is-forgotten",
        BOTH,
        "RunStore",
        changing(failed=_failed_on_the_last_worker),
        "store-has-written",
    ),
    Bug(
        "failed-store-is-published",
        BOTH,
        "CompleteStore",
        instead("publishes-eligible", lambda s, p: lambda h: implies(p.publish(h), s.job_host(p.j, h))),
        "failed-is-not-published",
    ),
    Bug("failed-load-completes-as-whole", BOTH, "CompleteLoad", without("nothing-failed"), "computed-in-table"),
    Bug(
        "failed-load-counts-as-loaded",
        BOTH,
        "CompleteFailedLoad",
        instead("brought-is-copied", lambda s, p: lambda d: implies(p.brought(d), s.job_device(p.j, d))),
        "failed-is-not-counted",
    ),
    Bug(
        "failed-load-is-published",
        BOTH,
        "CompleteFailedLoad",
        instead("publishes-eligible", lambda s, p: lambda d: implies(p.publish(d), s.job_device(p.j, d))),
        "failed-is-not-published",
    ),
    Bug("unreadable-stays-on-offer", BOTH, "CompleteFailedLoad", untouched("host_key"), "unreadable-is-not-offered"),
    Bug("lookup-keeps-unreadable", BOTH, "CompleteFailedLoad", without("finders-look-again"), "pins-phase"),
    Bug("unreadable-is-not-released", BOTH, "CompleteFailedLoad", changing(host_refs=_kept_for_finders), "host-owned"),
    # resets
    Bug("reset-frees-in-flight", PINNING, "Reset", changing(device_refs=_freed_in_flight), "device-owned"),
    Bug("reset-frees-host-in-flight", PINNING, "Reset", changing(host_refs=_freed_on_host_in_flight), "host-owned"),
    Bug("reset-keeps-job-ids", BOTH, "Reset", untouched("awaits"), "awaited-job"),
    Bug("reset-keeps-pins", BOTH, "Reset", untouched("pins_device"), "device-owned"),
    Bug("reset-keeps-host-keys", BOTH, "Reset", untouched("host_key"), "true-reset"),
    Bug("reset-keeps-device-keys", BOTH, "Reset", untouched("device_key"), "false-reset"),
    Bug("reset-keeps-jobs-live", BOTH, "Reset", untouched("view"), "false-reset"),
    Bug("reset-rewinds-ids", BOTH, "Reset", changing(next_job=lambda w, s, p, t: lambda: 0), "ids-go-on"),
    Bug("reset-forgets-survivors", BOTH, "Reset", untouched("outdated"), "false-reset"),
    Bug("reset-forgets-launched-compute", BOTH, "Reset", untouched("step_old"), "share-and-tables"),
    Bug("reset-frees-under-step", BOTH, "Reset", untouched("left"), "computes-for-running"),
    Bug("reset-lies", BOTH, "Reset", without("true-without-survivors"), "true-reset"),
    Bug("reset-lies-of-jobs", PINNING, "Reset", without("true-is-drained"), "true-reset"),
    Bug("reset-says-no-for-nothing", BOTH, "Reset", without("false-has-a-cause"), "false-reset-cause"),
    Bug("reset-loses-unfinished-copies", FENCING, "Reset", without("settled-is-settled"), "work-is-in-table"),
    # resets of one tier
    Bug("reset-of-one-tier-invalidates", BOTH, "Reset", without("invalidates-both"), "cached-on-host"),
    Bug("reset-of-host-preempts", BOTH, "Reset", without("host-preempts-nobody"), "device-owned"),
    Bug("reset-drops-what-publishes-elsewhere", PINNING, "Reset", changing(view=_of_the_other_tier), "false-reset"),
    Bug("true-reset-drops-what-publishes-elsewhere", FENCING, "Reset", changing(view=_of_the_other_tier), "true-reset"),
    Bug("reset-of-host-forgets-loads", BOTH, "Reset", changing(awaits=_nothing_awaited), "load-is-awaited"),
    Bug("reset-of-host-cancels-queued-loads", BOTH, "Reset", changing(host_refs=_all_queued_freed), "host-owned"),
    Bug(
        "reset-of-device-frees-what-stores-write", FENCING, "Reset", changing(host_refs=_all_stores_freed), "host-owned"
    ),
    Bug("reset-of-host-lets-draining-go", FENCING, "Reset", changing(phase=_nobody_drains), "table-phase"),
    Bug("reset-of-host-lets-loading-go", BOTH, "Reset", changing(phase=_nobody_loads), "table-phase"),
    Bug("reset-of-host-keeps-its-keys", BOTH, "Reset", changing(host_key=_cleared_with_device), "true-reset"),
    Bug("reset-of-device-keeps-its-keys", BOTH, "Reset", changing(device_key=_cleared_with_host), "true-reset"),
    Bug(
        "reset-of-host-blames-survivors",
        PINNING,
        "Reset",
        instead("false-has-a-cause", _any_survivor_is_a_cause),
        "false-reset-cause",
    ),
    Bug(
        "second-free-is-done",
        BOTH,
        "FreeTwice",
        changing(device_refs=lambda w, s, p, t: lambda d: s.device_refs(d) - one(d == p.d)),
        "refused-free",
    ),
    # lines that safety can do without
    Bug("launch-does-not-fence-store", FENCING, "Launch", without("store-before-store"), "", "stores keep their order"),
    Bug("launch-does-not-fence-second-load", FENCING, "Launch", without("load-before-load"), "", "so do loads"),
    Bug(
        "launch-does-not-fence-host-reader",
        FENCING,
        "Launch",
        without("store-before-load-of-it"),
        "",
        "what a load reads is published, and no copy into a published block is on its way",
    ),
    Bug(
        "launch-forgets-earlier-fences",
        FENCING,
        "Launch",
        without("flushed-stays-so"),
        "",
        "the launch that next touches the block finds the conflict again",
    ),
    Bug("reset-does-not-flush", FENCING, "Reset", untouched("flushed"), "", "for the same reason"),
    Bug("reset-of-no-tier", BOTH, "Reset", without("names-a-tier"), "", "it gives up lookups, and nothing else"),
    Bug(
        "reset-of-host-is-true-while-loads-are-queued",
        PINNING,
        "Reset",
        instead("true-is-drained", _no_job_in_flight),
        "",
        "what they carry is published on the device, which is not reset",
    ),
    Bug(
        "store-does-not-wait-for-stale-load",
        FENCING,
        "RunStore",
        without("waits-for-copies"),
        "",
        "it waits for the compute that writes its source, and that waits for the load",
    ),
    Bug(
        "output-handled-before-it-is-there",
        BOTH,
        "HandleOutput",
        without("computed"),
        "",
        "who reads the blocks is ordered after the compute; that the output is there is no matter of blocks",
    ),
)


def named_failures() -> dict[str, tuple[Bug, Discipline]]:
    """Every bug that an obligation finds, once for each of its disciplines, under a name of its own."""
    return {
        f"{discipline}-{bug.name}": (bug, discipline) for bug in BUGS if bug.fails for discipline in bug.disciplines
    }


def failed_parametrically(bug: Bug, discipline: Discipline) -> set[str]:
    """The obligations that fail, among the one that is named, or all if none is."""
    return _failed(Induction(discipline, action_of(bug, discipline), bug.alter), bug)


def failed_at_finite_scope(bug: Bug, discipline: Discipline) -> set[str]:
    """The same at the finite scope."""
    return _failed(FiniteInduction(discipline, action_of(bug, discipline), bug.alter), bug)


def _failed(induction: Induction | FiniteInduction, bug: Bug) -> set[str]:
    """An obligation on which the solver gives up has neither failed nor been proved: it is an error."""
    verdicts = {o.obligation.name: o.verdict for o in induction.prove(lambda o: bug.fails in ("", o.name))}
    assert set(verdicts.values()) <= {"proved", "counterexample"}, verdicts
    return {name for name, verdict in verdicts.items() if verdict == "counterexample"}


def action_of(bug: Bug, discipline: Discipline) -> Action:
    return next(action for action in actions_of(discipline) if action.name == bug.action)


def _told(bug: Bug, discipline: Discipline) -> tuple[bool, str]:
    started = time.monotonic()
    parametric = failed_parametrically(bug, discipline)
    between = time.monotonic()
    finite = failed_at_finite_scope(bug, discipline)
    is_so = parametric == finite == {bug.fails} - {""}
    return is_so, (
        f"{'ok   ' if is_so else 'WRONG'} {discipline} {bug.action} {bug.name}: "
        f"{bug.fails or 'survives, ' + bug.why}; parametric {between - started:.1f} s {sorted(parametric)}, "
        f"finite {time.monotonic() - between:.1f} s {sorted(finite)}"
    )


def main(names: Sequence[str]) -> int:
    """Every bug, or those of these names or actions, in each of its disciplines; 1 if one is not found as is said."""
    wrong = 0
    for bug in BUGS:
        if not names or bug.name in names or bug.action in names:
            for discipline in bug.disciplines:
                is_so, text = _told(bug, discipline)
                wrong += not is_so
                print(text, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
