"""Launch: one step goes to the workers: compute, stores made now, queued loads, and the fence that it waits for."""

from dataclasses import replace

from kvspecs.proof.action import Action, Clause, Effect, Parameters, holds
from kvspecs.proof.counting import Union
from kvspecs.proof.logic import Term, all_of, any_of, differ, implies, no, pick
from kvspecs.proof.pools import device, host, taken, touched
from kvspecs.proof.state import State, Vocabulary, in_table, is_full, live_store, pending, reached


def launch(w: Vocabulary, s: State, p: Parameters) -> Effect:
    """What it chooses:

    compute, g, last   whether there is a step, its id, and the last one before it that is in the table, or -1
    part               part(r, d): the block is in the share of request r
    used, user         the blocks of any share, and one of those whose share each is in
    stored, source, key, source_owner   destinations on the host; for each the device block, key, and who computes it
    job, is_source, stored_in           the job of each destination; the sources; the destination of each source
    until, owner, owned                 the next job id after it; for whom each job is made, if for anybody
    flush              the jobs whose copies must run before anything of this launch
    """
    g, last, part, used, user = p.g, p.last, p.part, p.used, p.user
    stored, source, key, job = p.stored, p.source, p.key, p.job
    is_source, stored_in, until, flush = p.is_source, p.stored_in, p.until, p.flush
    first = s.next_job()

    def made(j: Term) -> Term:
        return all_of(first <= j, j < until)

    def queued_load(j: Term) -> Term:
        return all_of(in_table(w, s, j), no(s.sent(j)))

    def written(d: Term) -> Term:
        return all_of(used(d), no(reached(s, user(d), d)))

    def computes(r: Term) -> Term:
        return p.computes(r)

    def on_its_way(d: Term) -> Term:
        """The step that writes the block and has not left the table, or -1."""
        return pick(all_of(s.in_steps(s.wrote(d)), s.writes(s.wrote(d), d)), s.wrote(d), -1)

    step = pick(p.compute, g, last)
    alone = s.awaited() == -1
    host_tier = taken(w, host(s), stored)
    tier = touched(device(s), is_source) if w.pins else device(s)
    return Effect(
        guard=(
            holds("output-is-handled", no(is_full(w, s))),
            *_computed(w, s, p),
            *_stores(w, s, p),
            *_flushed(w, s, p, written, queued_load),
        ),
        after=replace(
            s,
            **tier.device(),
            **host_tier.host(),
            awaited=lambda: pick(alone, pick(p.compute, g, -1), s.awaited()),
            ahead=lambda: pick(all_of(p.compute, no(alone)), g, -1),
            in_steps=lambda x: any_of(s.in_steps(x), all_of(p.compute, x == g)),
            handled=lambda x: all_of(s.handled(x), differ(x, g)),
            ran=lambda x, v: all_of(s.ran(x, v), differ(x, g)),
            shares=lambda x, r: pick(x == g, computes(r), s.shares(x, r)),
            left=lambda x, r: all_of(s.left(x, r), differ(x, g)),
            share_table=lambda x, r, d: pick(x == g, part(r, d), s.share_table(x, r, d)),
            step_key=lambda x, d: pick(x == g, s.stands_for(user(d), d), s.step_key(x, d)),
            step_old=lambda x, d: pick(x == g, s.outdated(user(d)), s.step_old(x, d)),
            writes=lambda x, d: pick(x == g, all_of(p.compute, written(d)), s.writes(x, d)),
            writer=lambda x, d: pick(x == g, user(d), s.writer(x, d)),
            step_waits_for=lambda x, j: pick(x == g, flush(j), s.step_waits_for(x, j)),
            wrote=lambda d: pick(all_of(p.compute, written(d)), g, s.wrote(d)),
            read_from=lambda x, d: pick(x == g, on_its_way(d), s.read_from(x, d)),
            stored_from=lambda j, d: pick(
                made(j), pick(all_of(p.compute, written(d)), g, on_its_way(d)), s.stored_from(j, d)
            ),
            awaits=lambda r, j: any_of(s.awaits(r, j), all_of(made(j), p.owned(j), p.owner(j) == r)),
            view=lambda j: pick(made(j), w.live, s.view(j)),
            is_load=lambda j: all_of(s.is_load(j), no(made(j))),
            has_request=lambda j: pick(made(j), p.owned(j), s.has_request(j)),
            request=lambda j: pick(made(j), p.owner(j), s.request(j)),
            job_device=lambda j, d: pick(made(j), all_of(is_source(d), job(stored_in(d)) == j), s.job_device(j, d)),
            job_host=lambda j, h: pick(made(j), all_of(stored(h), job(h) == j), s.job_host(j, h)),
            device_of=lambda j, h: pick(made(j), source(h), s.device_of(j, h)),
            host_of=lambda j, d: pick(made(j), stored_in(d), s.host_of(j, d)),
            carries=lambda j, h: pick(made(j), key(h), s.carries(j, h)),
            failed=lambda j, h: all_of(s.failed(j, h), no(made(j))),
            sent=lambda j: any_of(s.sent(j), made(j), queued_load(j)),
            copied=lambda j, v: all_of(s.copied(j, v), no(made(j))),
            reported=lambda j, v: all_of(s.reported(j, v), no(made(j))),
            lost=lambda j, v: all_of(s.lost(j, v), no(made(j))),
            flushed=lambda j: all_of(any_of(s.flushed(j), flush(j)), no(made(j))),
            waits_for_job=lambda j, i: pick(any_of(made(j), queued_load(j)), flush(i), s.waits_for_job(j, i)),
            waits_for_step=lambda j: pick(made(j), step, pick(queued_load(j), last, s.waits_for_step(j))),
            next_job=lambda: until,
            launches=lambda: s.launches() + 1,
            sent_at=lambda j: pick(any_of(made(j), queued_load(j)), s.launches(), s.sent_at(j)),
            step_at=lambda x: pick(x == g, s.launches(), s.step_at(x)),
        ),
        changed={("J", "D"): lambda d: job(stored_in(d)), ("J", "H"): job},
        unions=(
            Union(("before", "idle"), (("after", "idle"), ("after", "computing"))),
            Union(("before", "idle"), (("after", "idle"), ("after", "ahead"))),
            Union(("before", "computing"), (("after", "computing"), ("after", "twice"))),
            Union(("after", "launched"), (("before", "launched"), ("before", "queued"))),
            Union(("after", "host_launched"), (("before", "host_launched"), ("before", "host_queued"))),
        ),
    )


def _computed(w: Vocabulary, s: State, p: Parameters) -> tuple[Clause, ...]:
    """Running requests are computed, each from its first block that is not computed yet, nor by the step whose output
    is awaited, wholly or in part."""
    g, last, part, used, user, computes = p.g, p.last, p.part, p.used, p.user, p.computes
    return (
        holds("step-is-an-id", all_of(g >= 0, last < g, last >= -1)),
        holds("last-is-in-table", any_of(last == -1, s.in_steps(last))),
        Clause("last-is-last", "S", lambda x: implies(s.in_steps(x), x <= last)),
        Clause("step-is-new", "J", lambda j: implies(in_table(w, s, j), s.waits_for_step(j) < g)),
        Clause("computes-in-step", "R", lambda r: implies(computes(r), p.compute)),
        Clause("computes-running", "R", lambda r: implies(computes(r), s.phase(r) == w.running)),
        Clause("part-of-computing", "RD", lambda r, d: implies(part(r, d), all_of(computes(r), s.table(r, d)))),
        Clause(
            "reads-what-is-computed",
            "RD",
            lambda r, d: implies(all_of(computes(r), s.table(r, d), reached(s, r, d)), part(r, d)),
        ),
        Clause("used-by-user", "D", lambda d: implies(used(d), part(user(d), d))),
        Clause("user-uses", "RD", lambda r, d: implies(part(r, d), used(d))),
    )


def _stores(w: Vocabulary, s: State, p: Parameters) -> tuple[Clause, ...]:
    """A block is stored that is cached, or stands for the key in a running request once this launch has run; a key
    that is on the host or on its way there is passed over; what has references is not overwritten."""
    stored, source, key, job, owner = p.stored, p.source, p.key, p.job, p.source_owner
    first = s.next_job()

    def computed_by_owner(h: Term) -> Term:
        r, d = owner(h), source(h)
        return all_of(
            s.phase(r) == w.running,
            no(s.outdated(r)),
            s.table(r, d),
            s.stands_for(r, d) == key(h),
            any_of(reached(s, r, d), p.part(r, d)),
        )

    return (
        holds("ids-go-on", p.until >= first),
        Clause("stored-by-new-job", "H", lambda h: implies(stored(h), all_of(first <= job(h), job(h) < p.until))),
        Clause("stored-has-key", "H", lambda h: implies(stored(h), differ(key(h), w.none))),
        Clause("stored-is-free", "H", lambda h: implies(stored(h), s.host_refs(h) == 0)),
        Clause(
            "source-holds-key",
            "H",
            lambda h: implies(stored(h), any_of(s.device_key(source(h)) == key(h), computed_by_owner(h))),
        ),
        Clause(
            "stored-once-in-launch", "HH", lambda h, i: implies(all_of(stored(h), stored(i), key(h) == key(i)), h == i)
        ),
        Clause(
            "not-on-host", "HH", lambda h, i: implies(all_of(stored(h), no(stored(i))), differ(s.host_key(i), key(h)))
        ),
        Clause(
            "not-on-its-way",
            "HJH",
            lambda h, j, i: implies(
                all_of(stored(h), live_store(w, s, j), s.job_host(j, i)), differ(s.carries(j, i), key(h))
            ),
        ),
        Clause(
            "source-is-stored",
            "D",
            lambda d: implies(p.is_source(d), all_of(stored(p.stored_in(d)), source(p.stored_in(d)) == d)),
        ),
        Clause("stored-from-source", "H", lambda h: implies(stored(h), p.is_source(source(h)))),
        Clause(
            "owner-runs",
            "J",
            lambda j: implies(
                all_of(first <= j, j < p.until, p.owned(j)), all_of(not w.pins, s.phase(p.owner(j)) == w.running)
            ),
        ),
    )


def _flushed(w: Vocabulary, s: State, p: Parameters, written: Term, queued_load: Term) -> tuple[Clause, ...]:
    """The fence (PR 41956): an unfinished copy that touches a block with this launch, one of them writing, is flushed.

    Under pinning every copy owns its blocks, and nobody has to wait.
    """
    flush = p.flush
    launched_only = Clause("flushes-launched", "J", lambda j: implies(flush(j), all_of(in_table(w, s, j), s.sent(j))))
    if w.pins:
        return (launched_only,)

    def store(j: Term, v: Term) -> Term:
        return all_of(pending(s, j, v), no(s.is_load(j)))

    def load(j: Term, v: Term) -> Term:
        return all_of(pending(s, j, v), s.is_load(j))

    def clause(name: str, sorts: str, conflict: Term) -> Clause:
        return Clause(name, sorts, lambda j, v, *rest: implies(conflict(j, v, *rest), flush(j)))

    return (
        launched_only,
        clause("flushed-stays-so", "JW", lambda j, v: all_of(pending(s, j, v), s.flushed(j))),
        clause(
            "store-before-compute",
            "JWD",
            lambda j, v, d: all_of(store(j, v), s.job_device(j, d), p.compute, written(d)),
        ),
        clause(
            "store-before-load",
            "JWDJ",
            lambda j, v, d, i: all_of(store(j, v), s.job_device(j, d), queued_load(i), s.job_device(i, d)),
        ),
        clause("store-before-store", "JWH", lambda j, v, h: all_of(store(j, v), s.job_host(j, h), p.stored(h))),
        clause(
            "store-before-load-of-it",
            "JWHJ",
            lambda j, v, h, i: all_of(store(j, v), s.job_host(j, h), queued_load(i), s.job_host(i, h)),
        ),
        clause("load-before-store", "JWH", lambda j, v, h: all_of(load(j, v), s.job_host(j, h), p.stored(h))),
        clause(
            "load-before-compute", "JWD", lambda j, v, d: all_of(load(j, v), s.job_device(j, d), p.compute, p.used(d))
        ),
        clause(
            "load-before-load",
            "JWDJ",
            lambda j, v, d, i: all_of(load(j, v), s.job_device(j, d), queued_load(i), s.job_device(i, d)),
        ),
        clause(
            "load-before-store-of-it", "JWD", lambda j, v, d: all_of(load(j, v), s.job_device(j, d), p.is_source(d))
        ),
    )


ACTIONS = (
    Action(
        "Launch",
        ("Launch",),
        {
            "compute": "B",
            "g": "S",
            "last": "S",
            "computes": "R>B",
            "part": "RD>B",
            "used": "D>B",
            "user": "D>R",
            "stored": "H>B",
            "source": "H>D",
            "key": "H>K",
            "source_owner": "H>R",
            "job": "H>J",
            "is_source": "D>B",
            "stored_in": "D>H",
            "until": "J",
            "owned": "J>B",
            "owner": "J>R",
            "flush": "J>B",
        },
        launch,
        terms=(
            ("H", "H", lambda s, p, h: p.stored_in(p.source(h))),
            ("H", "R", lambda s, p, h: p.source_owner(p.stored_in(p.source(h)))),
            ("H", "R", lambda s, p, h: p.user(p.source(h))),
            ("H", "S", lambda s, p, h: s.wrote(p.source(h))),
            ("D", "R", lambda s, p, d: p.source_owner(p.stored_in(d))),
            ("D", "J", lambda s, p, d: p.job(p.stored_in(d))),
            ("", "S", lambda s, p: -1),
        ),
    ),
)
