"""Required witnesses: states that have to be reachable, so that what is proved of them is proved of something.

Each comes with the actions that lead there from the initial state. The solver finds their parameters (`bounded`).
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.bounded import SIZES, Bounded, Path
from kvspecs.proof.logic import Term, all_of, differ, no
from kvspecs.proof.state import State, awaiting, in_share, in_table, live_load, live_store, marked, pending, through

TWO_WORKERS: Mapping[str, int] = {**SIZES, "W": 2}


class Witness(NamedTuple):
    """A state that has to be reachable.

    name     one phrase
    found    whether a state is one, of the paths of a discipline
    path     the names of actions that lead there
    """

    name: str
    found: Callable[[Bounded, State], Term]
    path: tuple[str, ...]
    disciplines: tuple[Discipline, ...] = DISCIPLINES
    sizes: Mapping[str, int] = SIZES


def _path(*names: str) -> tuple[str, ...]:
    return tuple(name for text in names for name in text.split())


_STORED = "Submit Admit Launch RunCompute HandleOutput RunStore CompleteStore"
"""A request has computed and stored its block, and runs."""

_IN_FLIGHT = f"{_STORED} LeaveRunning AdmitWithLoad Launch"
"""It was preempted, and its load is on its way."""


def _abandoned_and_owned_again(b: Bounded, s: State) -> Term:
    def found(j: Term, h: Term, r: Term, x: Term) -> Term:
        copied = all_of(s.copied(j, x), no(s.reported(j, x)), no(s.lost(j, x)))
        return all_of(s.view(j) == b.w.abandoned, s.is_load(j), s.job_host(j, h), s.pins_host(r, h), copied)

    return b.some("JHRW", found)


def _overtaken_store(b: Bounded, s: State) -> Term:
    def found(j: Term, d: Term, r: Term, x: Term) -> Term:
        reads = all_of(pending(s, j, x), no(s.is_load(j)), s.job_device(j, d))
        return all_of(s.view(j) == b.w.forgotten, reads, s.table(r, d))

    return b.some("JDRW", found)


def _abandoned_and_live(b: Bounded, s: State) -> Term:
    def found(i: Term, j: Term, h: Term, g: Term) -> Term:
        one, other = all_of(s.view(i) == b.w.abandoned, s.job_host(i, h)), all_of(live_store(b.w, s, j), s.sent(j))
        return all_of(one, other, s.job_host(j, g))

    return b.some("JJHH", found)


def _survivor_beside_fresh(b: Bounded, s: State) -> Term:
    def found(r: Term, q: Term, d: Term, e: Term) -> Term:
        outdated, fresh = all_of(s.table(r, d), s.outdated(r)), all_of(s.table(q, e), no(s.outdated(q)))
        return all_of(outdated, fresh, s.computed(r, d), s.computed(q, e))

    return b.some("RRDD", found)


def _read_in_a_tier_that_is_reset(b: Bounded, s: State) -> Term:
    def found(j: Term, h: Term, x: Term) -> Term:
        return all_of(live_load(b.w, s, j), pending(s, j, x), s.job_host(j, h), s.host_key(h) == b.w.none)

    return b.some("JHW", found)


def _live_and_overtaken(b: Bounded, s: State) -> Term:
    def found(j: Term, d: Term, r: Term, x: Term) -> Term:
        reads = all_of(pending(s, j, x), live_store(b.w, s, j), s.job_device(j, d))
        return all_of(reads, s.table(r, d), no(s.computed(r, d)))

    return b.some("JDRW", found)


def _workers_apart(b: Bounded, s: State) -> Term:
    return b.some(
        "JWWH", lambda j, x, y, h: all_of(s.job_host(j, h), s.reported(j, x), pending(s, j, y), live_store(b.w, s, j))
    )


def _lost_and_reported(b: Bounded, s: State) -> Term:
    return b.some("JWWH", lambda j, x, y, h: all_of(s.job_host(j, h), s.reported(j, x), s.lost(j, y)))


def _drains_to_return(b: Bounded, s: State) -> Term:
    return b.some("RD", lambda r, d: all_of(s.phase(r) == b.w.draining, s.returns(r), s.table(r, d)))


def _queued_behind_step(b: Bounded, s: State) -> Term:
    queued = b.some("JH", lambda j, h: all_of(differ(s.view(j), b.w.gone), no(s.sent(j)), s.job_host(j, h)))
    return all_of(queued, s.awaited() >= 0, b.some("SRD", lambda g, r, d: all_of(s.in_steps(g), in_share(s, g, r, d))))


def _shared_block(b: Bounded, s: State) -> Term:
    return b.some("RRD", lambda r, q, d: all_of(differ(r, q), s.table(r, d), s.table(q, d), s.computed(q, d)))


def _left_in_launched_step(b: Bounded, s: State) -> Term:
    def found(r: Term, d: Term) -> Term:
        return all_of(
            s.awaited() >= 0, in_share(s, s.awaited(), r, d), s.left(s.awaited(), r), s.writes(s.awaited(), d)
        )

    return b.some("RD", found)


def _stored_again(b: Bounded, s: State) -> Term:
    """The first store of the key has left the table, and the host does not have it."""
    return b.some("JH", lambda j, h: all_of(live_store(b.w, s, j), j > 0, s.job_host(j, h), s.sent(j)))


def _computed_after_load(b: Bounded, s: State) -> Term:
    def found(d: Term, x: Term, g: Term) -> Term:
        torn = all_of(s.device_holds(d, x) == b.w.torn, differ(s.step_key(g, d), b.w.torn))
        return all_of(s.awaited() == g, s.writes(g, d), torn)

    return b.some("DWS", found)


def _covered_together(b: Bounded, s: State) -> Term:
    def found(i: Term, j: Term, x: Term, h: Term, g: Term) -> Term:
        stores = all_of(i < j, live_store(b.w, s, i), live_store(b.w, s, j), s.job_host(i, h), s.job_host(j, g))
        return all_of(stores, b.w.marks, marked(s, i, x), marked(s, j, x), no(s.reported(i, x)), no(s.reported(j, x)))

    return b.some("JJWHH", found)


def _in_both_steps(b: Bounded, s: State) -> Term:
    a, ahead = awaiting(s)
    return b.some("RD", lambda r, d: all_of(through(s, a, r, d), through(s, ahead, r, d), s.writes(a, d)))


def _left_both_steps(b: Bounded, s: State) -> Term:
    def found(r: Term, d: Term) -> Term:
        gone = all_of(*(all_of(in_share(s, g, r, d), s.left(g, r)) for g in awaiting(s)))
        return all_of(s.ahead() >= 0, gone, s.device_refs(d) == 2)

    return b.some("RD", found)


WITNESSES: tuple[Witness, ...] = (
    Witness(
        "an abandoned load is copied and not reported while its source is owned again",
        _abandoned_and_owned_again,
        _path(_IN_FLIGHT, "RunLoad LeaveLoadInFlight Submit Lookup"),
    ),
    Witness(
        "a forgotten store has yet to run while its source is in a table",
        _overtaken_store,
        _path("Submit Admit Launch RunCompute HandleOutput Reset Admit"),
        ("fencing",),
    ),
    Witness(
        "an abandoned store has yet to run while its source is in the table of a survivor",
        lambda b, s: b.some(
            "JDRW",
            lambda j, d, r, x: all_of(pending(s, j, x), s.view(j) == b.w.abandoned, s.job_device(j, d), s.table(r, d)),
        ),
        _path("Submit Admit Launch RunCompute HandleOutput Reset"),
        ("pinning",),
    ),
    Witness(
        "one job is abandoned and another one live",
        _abandoned_and_live,
        _path("Submit Admit Launch RunCompute HandleOutput Reset Submit Admit Launch"),
        ("pinning",),
        {**SIZES, "H": 2, "D": 3},
    ),
    Witness(
        "a survivor holds what is outdated while another request holds what is not",
        _survivor_beside_fresh,
        _path("Submit Submit Admit Launch RunCompute HandleOutput Reset Admit Launch RunCompute HandleOutput"),
    ),
    Witness(
        "a live load has yet to read a host block that was reset",
        _read_in_a_tier_that_is_reset,
        _path(_IN_FLIGHT, "Reset"),
    ),
    Witness(
        "a live store has yet to read a device block that was reset, and that a table has again",
        _live_and_overtaken,
        _path("Submit Submit Admit Launch RunCompute HandleOutput Reset Admit"),
        ("fencing",),
    ),
    Witness(
        "one worker has reported a store, and another has yet to run it",
        _workers_apart,
        _path("Submit Admit Launch RunCompute RunStore ReportPart"),
        sizes=TWO_WORKERS,
    ),
    Witness(
        "one worker has reported a store, and the report of another is lost",
        _lost_and_reported,
        _path("Submit Admit Launch RunCompute RunCompute RunStore RunStore LoseReport ReportPart"),
        sizes=TWO_WORKERS,
    ),
    Witness(
        "a request drains, and will wait again", _drains_to_return, _path(_IN_FLIGHT, "LeaveLoadInFlight"), ("fencing",)
    ),
    Witness(
        "a load is queued while the output of a step is awaited",
        _queued_behind_step,
        _path(_STORED, "LeaveRunning Submit Admit Launch AdmitWithLoad"),
        sizes={**SIZES, "D": 3, "J": 3},
    ),
    Witness(
        "two requests hold one block", _shared_block, _path("Submit Submit Admit Launch RunCompute HandleOutput Admit")
    ),
    Witness(
        "a request has left the step that writes its block",
        _left_in_launched_step,
        _path("Submit Admit Launch LeaveRunning"),
    ),
    Witness(
        "a key whose store failed is stored again",
        _stored_again,
        _path("Submit Admit Launch RunCompute HandleOutput RunStore CompleteStore Launch"),
    ),
    Witness(
        "what a load failed to bring is computed where it is torn",
        _computed_after_load,
        _path(_IN_FLIGHT, "RunLoad CompleteFailedLoad Wake Launch"),
    ),
    Witness(
        "a step reads what the one before it has yet to compute",
        _in_both_steps,
        _path("Submit Admit Launch Grow Launch"),
    ),
    Witness(
        "two launched steps hold a block of a request that left both",
        _left_both_steps,
        _path("Submit Admit Launch Grow Launch LeaveRunning"),
    ),
    Witness(
        "the older of two steps is handled, and the younger one awaited",
        lambda b, s: all_of(s.awaited() == 1, s.ahead() == -1, b.some("RD", lambda r, d: through(s, 1, r, d))),
        _path("Submit Admit Launch Grow Launch RunCompute HandleOutput"),
    ),
    Witness(
        "one mark covers two stores",
        _covered_together,
        _path("Submit Admit Launch RunCompute RunStore RunStore HearMark"),
        sizes={**SIZES, "H": 2, "K": 3},
    ),
    Witness(
        "a store that a mark covers is reported, and another one on its way",
        lambda b, s: b.some(
            "JJW",
            lambda i, j, x: all_of(
                b.w.marks, s.reported(i, x), in_table(b.w, s, i), live_store(b.w, s, j), pending(s, j, x)
            ),
        ),
        _path("Submit Admit Launch RunCompute RunStore HearMark ReportPart"),
        sizes={**TWO_WORKERS, "H": 2, "K": 3},
    ),
)


def witnesses_of(discipline: Discipline) -> tuple[Witness, ...]:
    """The witnesses that a discipline has to have."""
    return tuple(witness for witness in WITNESSES if discipline in witness.disciplines)


def find(discipline: Discipline, witness: Witness) -> Path | None:
    """A path to the witness; None: there is none. Raises Undecided."""
    return _bounded(discipline, tuple(sorted(witness.sizes.items()))).along(witness.path, witness.found)


@cache
def _bounded(discipline: Discipline, sizes: tuple[tuple[str, int], ...]) -> Bounded:
    """The same for all witnesses of these sizes, since many paths begin alike."""
    return Bounded(discipline, dict(sizes))
