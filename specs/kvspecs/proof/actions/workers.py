"""Run: the oldest operation of one worker's stream runs. It moves contents and never asks what the scheduler thinks.

Any part of a copy may fail: the worker goes on, and reports the job with what of it failed.
"""

from dataclasses import replace

from kvspecs.proof.action import Action, Clause, Effect, Parameters, holds
from kvspecs.proof.logic import Binary, Term, all_of, any_of, differ, iff, implies, no, pick
from kvspecs.proof.state import State, Vocabulary, computing, pending


def compute(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """last: its output is handled and every other worker has run it, so that it leaves the table; else `other` has yet
    to run it, or its output is not handled."""
    g, v, last, other = p.g, p.v, p.last, p.other

    def here(d: Term, x: Term) -> Term:
        return all_of(x == v, s.writes(g, d))

    return Effect(
        guard=(
            holds("launched", computing(s, g, v)),
            Clause("oldest-of-stream", "S", lambda x: implies(computing(s, x, v), g <= x)),
            Clause("waits-for-copies", "J", lambda j: implies(s.step_waits_for(g, j), no(pending(s, j, v)))),
            Clause("last-is-last", "W", lambda x: implies(last, any_of(x == v, s.ran(g, x)))),
            holds("last-is-handled", implies(last, s.handled(g))),
            holds("other-has-not", any_of(last, no(s.handled(g)), all_of(differ(other, v), no(s.ran(g, other))))),
        ),
        after=replace(
            s,
            ran=lambda x, y: any_of(s.ran(x, y), all_of(x == g, y == v)),
            in_steps=lambda x: all_of(s.in_steps(x), no(all_of(x == g, last))),
            laggard=lambda x: pick(x == g, other, s.laggard(x)),
            device_holds=lambda d, x: pick(here(d, x), s.step_key(g, d), s.device_holds(d, x)),
            device_old=lambda d, x: pick(here(d, x), s.step_old(g, d), s.device_old(d, x)),
        ),
    )


def _ready(s: State, p: Parameters, load: bool) -> tuple[Clause, ...]:
    """The oldest of its stream, after the compute and the copies that its launch made it wait for (PR 46278)."""
    j, v = p.j, p.v
    return (
        holds("launched", pending(s, j, v)),
        holds("direction", iff(s.is_load(j), load)),
        Clause(
            "oldest-of-stream",
            "J",
            lambda i: implies(all_of(pending(s, i, v), iff(s.is_load(i), load)), j <= i),
        ),
        Clause(
            "waits-for-compute",
            "S",
            lambda x: implies(all_of(s.in_steps(x), x <= s.waits_for_step(j)), s.ran(x, v)),
        ),
        Clause("waits-for-copies", "J", lambda i: implies(s.waits_for_job(j, i), no(pending(s, i, v)))),
    )


def _noted(s: State, p: Parameters) -> Binary:
    """What failed on one worker has failed, whatever the others bring over."""
    return lambda i, h: any_of(s.failed(i, h), all_of(i == p.j, s.job_host(p.j, h), p.fails(h)))


def store(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """fails(h): of which destinations the copy fails, and is torn."""
    j, v, fails = p.j, p.v, p.fails

    def here(h: Term, x: Term) -> Term:
        return all_of(x == v, s.job_host(j, h))

    def brought(h: Term) -> Term:
        return pick(fails(h), w.torn, s.device_holds(s.device_of(j, h), v))

    return Effect(
        guard=_ready(s, p, load=False),
        after=replace(
            s,
            copied=lambda i, x: any_of(s.copied(i, x), all_of(i == j, x == v)),
            failed=_noted(s, p),
            host_holds=lambda h, x: pick(here(h, x), brought(h), s.host_holds(h, x)),
            host_old=lambda h, x: pick(here(h, x), s.device_old(s.device_of(j, h), v), s.host_old(h, x)),
        ),
    )


def load(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """fails(h): of which sources the copy fails; what it was to write is torn."""
    j, v, fails = p.j, p.v, p.fails

    def here(d: Term, x: Term) -> Term:
        return all_of(x == v, s.job_device(j, d))

    def brought(d: Term) -> Term:
        return pick(fails(s.host_of(j, d)), w.torn, s.host_holds(s.host_of(j, d), v))

    return Effect(
        guard=_ready(s, p, load=True),
        after=replace(
            s,
            copied=lambda i, x: any_of(s.copied(i, x), all_of(i == j, x == v)),
            failed=_noted(s, p),
            device_holds=lambda d, x: pick(here(d, x), brought(d), s.device_holds(d, x)),
            device_old=lambda d, x: pick(here(d, x), s.host_old(s.host_of(j, d), v), s.device_old(d, x)),
        ),
    )


_COPY = {"j": "J", "v": "W", "fails": "H>B"}

ACTIONS = (
    Action("RunCompute", ("Run",), {"g": "S", "v": "W", "last": "B", "other": "W"}, compute),
    Action("RunStore", ("Run", "FailCopy"), _COPY, store),
    Action("RunLoad", ("Run", "FailCopy"), _COPY, load),
)
