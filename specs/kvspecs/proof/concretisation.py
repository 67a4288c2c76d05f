"""From the solver to the machine: a state that z3 finds, and the action in it, as a state and an action of `kvmodel`.

The specification is wider than the machine: its tables have no positions, and ids may be any. So the solver is also
asked that what it finds has the shape of the machine's states (`shape`): every request asks for the same two keys, and
tables, shares and hits are prefixes of them.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import z3

from kvmodel import Contract, Machine
from kvmodel import actions as act
from kvmodel.actions import Action as MachineAction
from kvmodel.block_pool import Pool
from kvmodel.contract import Discipline, Reports
from kvmodel.launched_step import Share, Step
from kvmodel.request import DRAINING, WAITING, Pins, Request
from kvmodel.scope import Meaning, Scope
from kvmodel.state import State as MachineState
from kvmodel.tiers import TIERS, Tiers
from kvmodel.transfer_job import (
    COPIED,
    LAUNCHED,
    LOAD,
    LOST,
    NONE,
    QUEUED,
    REPORTED,
    STORE,
    Job,
    Pair,
)
from kvspecs.proof.action import Parameters
from kvspecs.proof.finite import FiniteInduction
from kvspecs.proof.logic import Term, all_of, any_of, differ, iff, implies, no
from kvspecs.proof.state import TABLES, State, in_share, in_table, keeps_references, reached
from kvspecs.proof.symbols import PHASES, VIEWS

SIZES: Mapping[str, int] = {"D": 3, "H": 2, "R": 2, "W": 2, "K": 3, "J": 3, "S": 2}
SCOPE = Scope(
    device_blocks=3,
    host_blocks=2,
    workers=2,
    prompts=("ab", "ab"),
    resets=9,
    meanings=("invalidate", "evict"),
    survivors=True,
    tiers=TIERS,
    lookups=True,
    duplicates=9,
    losses=9,
    forgeries=9,
    double_frees=9,
    failures=9,
    partial_failures=9,
)
FIRST, SECOND = 1, 2
"""The two keys that both requests ask for, in this order."""


OF_MARKS = ("HearMark", "LoseMark")
"""Actions of machines whose workers report marks."""


def machine_of(discipline: Discipline, name: str = "") -> Machine:
    """A machine that has room for what the solver finds, and the action of that name. Its engine waits for the first
    worker alone."""
    reports: Reports = "marks" if name in OF_MARKS else "per-job"
    return Machine(Contract(discipline, output_from="first", depth=2, reports=reports), SCOPE)


def shape(f: FiniteInduction) -> Iterator[Term]:
    """What the machine's states are besides: the solver is asked for states of this shape."""
    w, s, e = f.w, f.before, f.elements
    yield w.deep
    yield w.marks == (f.action.name in OF_MARKS)
    for k, other in f.tuples("KK"):
        yield w.below(k, other) == (k.eq(e["K"][FIRST]) and other.eq(e["K"][SECOND]))
    for r, k in f.tuples("RK"):
        yield w.in_prompt(r, k) == (not k.eq(w.none))
    for r in e["R"]:
        yield from _shape_of_request(f, r)
    for g, r in f.tuples("SR"):
        yield from _shape_of_share(f, g, r)
    for g in e["S"]:
        yield implies(s.in_steps(g), any_of(*(s.shares(g, r) for r in e["R"])))
        yield any_of(s.in_steps(g), all_of(*(no(s.writes(g, d)) for d in e["D"])))
    for j in e["J"]:
        yield from _shape_of_job(f, j)


def _shape_of_request(f: FiniteInduction, r: Term) -> Iterator[Term]:
    w, s, e = f.w, f.before, f.elements

    def held(d: Term) -> Term:
        return s.table(r, d)

    def computed(d: Term) -> Term:
        return all_of(s.table(r, d), s.computed(r, d))

    def key(d: Term) -> Term:
        return s.stands_for(r, d)

    yield from _prefix(f, held, key)
    yield from _early(f, computed, held, key)
    yield implies(s.phase(r) == w.draining, any_of(*(s.awaits(r, j) for j in e["J"])))
    holding = any_of(s.phase(r) == w.running, s.phase(r) == w.loading, s.phase(r) == w.draining)
    yield implies(no(holding), no(s.outdated(r)))


def _shape_of_share(f: FiniteInduction, g: Term, r: Term) -> Iterator[Term]:
    s, e = f.before, f.elements

    def held(d: Term) -> Term:
        return all_of(s.in_steps(g), in_share(s, g, r, d))

    def read(d: Term) -> Term:
        return all_of(held(d), no(s.writes(g, d)))

    def key(d: Term) -> Term:
        return s.step_key(g, d)

    yield from _prefix(f, held, key)
    yield from _early(f, read, held, key)
    shares = all_of(s.in_steps(g), s.shares(g, r))
    yield implies(shares, any_of(*(all_of(held(d), s.writes(g, d)) for d in e["D"])))
    for d, x in f.tuples("DD"):
        yield implies(all_of(held(d), held(x)), s.step_old(g, d) == s.step_old(g, x))


def _shape_of_job(f: FiniteInduction, j: Term) -> Iterator[Term]:
    w, s, e = f.w, f.before, f.elements
    first, second = e["K"][FIRST], e["K"][SECOND]
    here = in_table(w, s, j)
    yield implies(here, any_of(*(s.job_host(j, h) for h in e["H"])))
    yield implies(keeps_references(w, s, j), any_of(*(no(s.reported(j, x)) for x in e["W"])))
    yield implies(s.view(j) == w.forgotten, any_of(*(no(any_of(s.reported(j, x), s.lost(j, x))) for x in e["W"])))
    yield implies(all_of(here, s.is_load(j)), s.has_request(j))
    yield implies(s.waits_for_step(j) >= 0, any_of(*(all_of(s.in_steps(g), s.waits_for_step(j) == g) for g in e["S"])))
    for h in e["H"]:
        yield implies(all_of(here, s.failed(j, h)), all_of(s.job_host(j, h), any_of(*(s.copied(j, x) for x in e["W"]))))
    for i in e["J"]:
        yield implies(all_of(here, s.waits_for_job(j, i)), all_of(differ(i, j), in_table(w, s, i), s.sent(i)))
    if w.pins:
        yield implies(all_of(here, no(s.is_load(j))), no(s.has_request(j)))
    for h, g in f.tuples("HH"):  # the pairs of a job carry keys of one request: different ones
        both = all_of(here, s.job_host(j, h), s.job_host(j, g), s.carries(j, h) == s.carries(j, g))
        yield implies(both, h.eq(g))
    for r, h in f.tuples("RH"):  # what is loaded comes right after what is computed
        late = all_of(here, s.is_load(j), s.awaits(r, j), s.job_host(j, h), s.carries(j, h) == second)
        covered = [
            all_of(s.table(r, d), s.stands_for(r, d) == first, any_of(s.computed(r, d), s.job_device(j, d)))
            for d in e["D"]
        ]
        yield implies(late, any_of(*covered))


Blocks = Callable[[Term], Term]
"""Whether a device block is in some set; or the key for which it stands."""


def _prefix(f: FiniteInduction, member: Blocks, key: Blocks) -> Iterator[Term]:
    """Blocks stand for different keys, and the second only beside the first."""
    blocks, first, second = f.elements["D"], f.elements["K"][FIRST], f.elements["K"][SECOND]
    for d, x in itertools.product(blocks, blocks):
        if not d.eq(x):
            yield implies(all_of(member(d), member(x)), differ(key(d), key(x)))
    for d in blocks:
        beside = any_of(*(all_of(member(x), key(x) == first) for x in blocks))
        yield implies(all_of(member(d), key(d) == second), beside)


def _early(f: FiniteInduction, part: Blocks, whole: Blocks, key: Blocks) -> Iterator[Term]:
    """A part of a prefix is a prefix: if the second is in it, so is the first."""
    first, second = f.elements["K"][FIRST], f.elements["K"][SECOND]
    for d, x in f.tuples("DD"):
        yield implies(all_of(part(d), key(d) == second, whole(x), key(x) == first), part(x))


def shape_of_choice(f: FiniteInduction) -> Iterator[Term]:
    """The same of what an action chooses: positions go from the first key on."""
    s, p = f.before, Parameters(f.values)
    choices: Mapping[str, Callable[[], Iterator[Term]]] = {
        "Admit": lambda: _shape_of_admission(f, p),
        "AdmitWithLoad": lambda: itertools.chain(_shape_of_admission(f, p), _shape_of_loading(f, p)),
        "Grow": lambda: _shape_of_growth(f, p),
        "Finish": lambda: _shape_of_the_finished(f, p),
        "Launch": lambda: _shape_of_launch(f, p),
        "RunStore": lambda: iter([implies(p.fails(h), s.job_host(p.j, h)) for h in f.elements["H"]]),
        "RunLoad": lambda: iter([implies(p.fails(h), s.job_host(p.j, h)) for h in f.elements["H"]]),
        "HandleOutput": lambda: iter([p.v == f.elements["W"][0]]),
        "HearMark": lambda: iter([_covers(f, p.v, p.load, p.until)]),
        "LoseMark": lambda: iter([any_of(*(_covers(f, p.v, load, s.next_job()) for load in (False, True)))]),
        "ReportUnowed": lambda: iter(
            [any_of(p.j == s.next_job(), all_of(in_table(f.w, s, p.j), s.reported(p.j, p.v)))]
        ),
    }
    return choices.get(f.action.name, lambda: iter(()))()


def _covers(f: FiniteInduction, v: Term, load: Term, until: Term) -> Term:
    """Such a mark would report something."""
    s = f.before
    return any_of(
        *(
            all_of(in_table(f.w, s, j), iff(s.is_load(j), load), j < until, _may_be_reported(s, j, v))
            for j in f.elements["J"]
        )
    )


def _may_be_reported(s: State, j: Term, v: Term) -> Term:
    return all_of(s.copied(j, v), no(s.reported(j, v)), no(s.lost(j, v)))


def _shape_of_admission(f: FiniteInduction, p: Parameters) -> Iterator[Term]:
    def given(d: Term) -> Term:
        return any_of(p.hit(d), p.fresh(d))

    yield any_of(*(given(d) for d in f.elements["D"]))
    yield from _prefix(f, given, p.key)
    yield from _early(f, p.hit, given, p.key)


def _shape_of_loading(f: FiniteInduction, p: Parameters) -> Iterator[Term]:
    def given(d: Term) -> Term:
        return any_of(p.hit(d), p.fresh(d))

    def there_after_load(d: Term) -> Term:
        return any_of(p.hit(d), p.target(d))

    yield any_of(*(p.loaded(h) for h in f.elements["H"]))
    yield from _early(f, there_after_load, given, p.key)


def _shape_of_growth(f: FiniteInduction, p: Parameters) -> Iterator[Term]:
    """One block, for the second key, beside the first."""
    s, first, second = f.before, f.elements["K"][FIRST], f.elements["K"][SECOND]
    blocks = f.elements["D"]
    yield any_of(*(p.fresh(d) for d in blocks))
    yield any_of(*(all_of(s.table(p.r, d), s.stands_for(p.r, d) == first) for d in blocks))
    for d, x in f.tuples("DD"):
        yield implies(all_of(p.fresh(d), p.fresh(x)), d.eq(x))
        yield implies(p.fresh(d), p.key(d) == second)
        yield no(all_of(s.table(p.r, x), s.stands_for(p.r, x) == second))


def _shape_of_the_finished(f: FiniteInduction, p: Parameters) -> Iterator[Term]:
    for key in f.elements["K"][FIRST:]:
        yield any_of(*(all_of(f.before.table(p.r, d), f.before.stands_for(p.r, d) == key) for d in f.elements["D"]))


def _shape_of_launch(f: FiniteInduction, p: Parameters) -> Iterator[Term]:
    """Every request that is computed has something to be; every job that is made has a pair; ids go on by one."""
    s, e = f.before, f.elements
    for r in e["R"]:
        yield from _shape_of_part(f, p, r)
    yield implies(p.compute, any_of(*(p.computes(r) for r in e["R"])))
    for j in e["J"]:
        made = all_of(s.next_job() <= j, j < p.until)
        yield implies(made, any_of(*(all_of(p.stored(h), p.job(h) == j) for h in e["H"])))
    yield p.g == p.last + 1


def _shape_of_part(f: FiniteInduction, p: Parameters, r: Term) -> Iterator[Term]:
    s = f.before

    def part(d: Term) -> Term:
        return all_of(p.computes(r), p.part(r, d))

    yield implies(p.computes(r), any_of(*(all_of(part(d), no(reached(s, r, d))) for d in f.elements["D"])))
    yield from _early(f, part, lambda d: s.table(r, d), lambda d: s.stands_for(r, d))


class Found(NamedTuple):
    """What the solver found, on numbers: the action of the specification, and the machine's state and action."""

    name: str
    state: MachineState
    action: MachineAction


class _Values:
    """The values of a model as numbers."""

    def __init__(self, f: FiniteInduction, model: Any) -> None:
        self.f = f
        self.model = model
        self._numbers = {
            sort: {str(term): number for number, term in enumerate(terms)}
            for sort, terms in f.elements.items()
            if sort not in "JS"
        }
        self._numbers["P"] = {str(term): number for number, term in enumerate(PHASES)}
        self._numbers["V"] = {str(term): number for number, term in enumerate(VIEWS)}

    def number(self, sort: str, term: Term) -> Any:
        if isinstance(term, bool | int):
            return term
        value = self.model.eval(term, model_completion=True)
        if sort == "B":
            return bool(z3.is_true(value))
        if sort in self._numbers:
            return self._numbers[sort][str(value)]
        return value.as_long()

    def of(self, function: Any, arguments: str, value: str) -> dict[tuple[int, ...], Any]:
        """A table or a parameter, entry by entry."""
        return {
            tuple(self.number(sort, term) for sort, term in zip(arguments, terms, strict=True)): self.number(
                value, function(*terms)
            )
            for terms in self.f.tuples(arguments)
        }


def concrete(f: FiniteInduction, model: Any) -> Found:
    """The machine's state and action that a model stands for."""
    values = _Values(f, model)
    t = {name: values.of(getattr(f.before, name), *signature) for name, signature in TABLES.items()}
    p: dict[str, Any] = {}
    for name, signature in f.action.parameters.items():
        arguments, arrow, value = signature.partition(">")
        p[name] = values.of(f.values[name], arguments, value) if arrow else values.number(signature, f.values[name])
    state = _state(t)
    return _with_pins(f, state, p, _action(f.action.name, t, p))


def _with_pins(f: FiniteInduction, state: MachineState, p: Mapping[str, Any], action: MachineAction) -> Found:
    """A lookup that found nothing looks like none; to be given up there has to be one."""
    if isinstance(action, act.ReleaseLookup) and state.requests[p["r"]].pins is None:
        requests = list(state.requests)
        requests[p["r"]] = requests[p["r"]]._replace(pins=Pins((), ()))
        state = state._replace(requests=tuple(requests))
    return Found(f.action.name, state, action)


Tables = Mapping[str, Mapping[tuple[int, ...], Any]]


def _state(t: Tables) -> MachineState:
    devices, hosts, workers = (range(SIZES[sort]) for sort in "DHW")
    initial = machine_of("pinning").initial()
    return initial._replace(
        device=_pool(t, "device", devices),
        host=_pool(t, "host", hosts),
        requests=tuple(_request(t, r) for r in range(SIZES["R"])),
        jobs=tuple(_job(t, j) for j in range(SIZES["J"]) if t["view"][(j,)] != len(VIEWS) - 1),
        steps=tuple(_step(t, g) for g in range(SIZES["S"]) if t["in_steps"][(g,)]),
        next_job=t["next_job"][()],
        device_contents=_contents(t, "device", devices, workers),
        host_contents=_contents(t, "host", hosts, workers),
    )


def _pool(t: Tables, tier: str, blocks: range) -> Pool:
    return Pool(
        tuple(t[f"{tier}_refs"][(b,)] for b in blocks),
        tuple(t[f"{tier}_key"][(b,)] for b in blocks),
        tuple(b for b in blocks if t[f"{tier}_queued"][(b,)]),
    )


def _contents(t: Tables, tier: str, blocks: range, workers: range) -> tuple[tuple[int, ...], ...]:
    held, old = t[f"{tier}_holds"], t[f"{tier}_old"]
    return tuple(tuple(-held[b, x] if old[b, x] else held[b, x] for b in blocks) for x in workers)


def _by_key(blocks: Iterator[int], key: Callable[[int], int]) -> tuple[int, ...]:
    return tuple(sorted(blocks, key=key))


def _request(t: Tables, r: int) -> Request:
    phase = t["phase"][(r,)]
    devices, hosts = range(SIZES["D"]), range(SIZES["H"])
    table = _by_key((d for d in devices if t["table"][r, d]), lambda d: t["stands_for"][r, d])
    pinned = _by_key((d for d in devices if t["pins_device"][r, d]), lambda d: t["device_key"][(d,)])
    host_pinned = _by_key((h for h in hosts if t["pins_host"][r, h]), lambda h: t["host_key"][(h,)])
    return Request(
        phase=phase,
        table=table,
        computed=sum(t["computed"][r, d] for d in table),
        pins=Pins(pinned, host_pinned) if phase == WAITING and pinned + host_pinned else None,
        jobs=tuple(j for j in range(SIZES["J"]) if t["awaits"][r, j]),
        outdated=bool(table) and t["outdated"][(r,)],
        returns=phase == DRAINING and t["returns"][(r,)],
    )


def _job(t: Tables, j: int) -> Job:
    load = t["is_load"][(j,)]
    hosts = [h for h in range(SIZES["H"]) if t["job_host"][j, h]]
    pairs = []
    for h in sorted(hosts, key=lambda h: t["carries"][j, h]):
        d = t["device_of"][j, h]
        pairs.append(Pair(h, d, t["carries"][j, h]) if load else Pair(d, h, t["carries"][j, h]))
    progress = tuple(_progress(t, j, x) for x in range(SIZES["W"]))
    waits = tuple(i for i in range(SIZES["J"]) if t["waits_for_job"][j, i] and _is_pending(t, i))
    step = t["waits_for_step"][(j,)]
    pending = _is_pending(t, j)
    return Job(
        id=j,
        direction=LOAD if load else STORE,
        request=t["request"][(j,)] if t["has_request"][(j,)] else NONE,
        pairs=tuple(pairs),
        view=t["view"][(j,)],
        progress=progress,
        flushed=pending and t["flushed"][(j,)],
        after_step=step if pending and step >= 0 and t["in_steps"][(step,)] else NONE,
        after_jobs=waits if pending else (),
        failed=_failed(t, j, load, pairs),
    )


def _failed(t: Tables, j: int, load: bool, pairs: list[Pair]) -> tuple[tuple[int, int], ...]:
    """Each pair of which a copy failed, on the first worker that has run it."""
    worker = next((x for x in range(SIZES["W"]) if t["copied"][j, x]), 0)
    hosts = [pair.source if load else pair.destination for pair in pairs]
    return tuple((worker, position) for position, host in enumerate(hosts) if t["failed"][j, host])


def _is_pending(t: Tables, j: int) -> bool:
    return t["sent"][(j,)] and not all(t["copied"][j, x] for x in range(SIZES["W"]))


def _progress(t: Tables, j: int, x: int) -> int:
    if not t["sent"][(j,)]:
        return QUEUED
    if t["lost"][j, x]:
        return LOST
    if t["reported"][j, x]:
        return REPORTED
    return COPIED if t["copied"][j, x] else LAUNCHED


def _step(t: Tables, g: int) -> Step:
    shares = []
    for r in range(SIZES["R"]):
        if t["shares"][g, r]:
            blocks = (d for d in range(SIZES["D"]) if t["share_table"][g, r, d])
            table = _by_key(blocks, lambda d: t["step_key"][g, d])
            start = sum(not t["writes"][g, d] for d in table)
            left = t["left"][g, r] and not t["handled"][(g,)]
            shares.append(Share(r, table, start, left, t["step_old"][g, table[0]]))
    return Step(
        id=g,
        shares=tuple(shares),
        ran=tuple(t["ran"][g, x] for x in range(SIZES["W"])),
        handled=t["handled"][(g,)],
        after_jobs=tuple(j for j in range(SIZES["J"]) if t["step_waits_for"][g, j] and _is_pending(t, j)),
    )


def _action(name: str, t: Tables, p: Mapping[str, Any]) -> MachineAction:
    """The machine's action with the same choices."""
    leaves = {"LeaveRunning", "LeaveLoaded", "LeaveQueuedLoad", "LeaveLoadInFlight"}
    if name in leaves:
        return act.Preempt(p["r"]) if p["again"] else act.Abort(p["r"])
    if name in ("AbortWaiting", "AbortDraining"):
        return act.Abort(p["r"])
    if name.startswith(("Report", "Complete")) and name != "ReportUnowed":
        return act.Report(p["v"], p["j"])
    simple: Mapping[str, Callable[[], MachineAction]] = {
        "Submit": lambda: act.Submit(p["r"]),
        "Lookup": lambda: _lookup(t, p),
        "ReleaseLookup": lambda: act.ReleaseLookup(p["r"]),
        "Grow": lambda: act.Grow(p["r"], tuple(d for (d,), fresh in p["fresh"].items() if fresh)),
        "Wake": lambda: act.Wake(p["r"]),
        "Finish": lambda: act.Finish(p["r"]),
        "Admit": lambda: _admit(t, p),
        "AdmitWithLoad": lambda: _admit(t, p),
        "Launch": lambda: _launch(t, p),
        "RunCompute": lambda: act.Run(p["v"], 0),
        "RunStore": lambda: _copy(t, p, STORE),
        "RunLoad": lambda: _copy(t, p, LOAD),
        "ReportUnowed": lambda: _unowed(t, p),
        "HearMark": lambda: act.ReportMark(p["v"], LOAD if p["load"] else STORE, p["until"] - 1),
        "LoseMark": lambda: act.LoseMark(p["v"], LOAD if _has_copied_load(t, p["v"]) else STORE),
        "LoseReport": lambda: act.LoseReport(p["v"], p["j"]),
        "HandleOutput": lambda: act.HandleOutput(),
        "Reset": lambda: _reset(p),
        "FreeTwice": lambda: _free_twice(t, p),
    }
    return simple[name]()


def _reset(p: Mapping[str, Any]) -> act.Reset:
    tiers: Tiers = "all" if p["device"] and p["host"] else "device" if p["device"] else "host"
    meaning: Meaning = "invalidate" if p["invalidate"] else "evict"
    return act.Reset(meaning, "keep" if p["keep"] else "preempt", tiers, p["answer"])


def _has_copied_load(t: Tables, v: int) -> bool:
    """The worker has a load to report."""
    return any(
        t["view"][(j,)] != len(VIEWS) - 1 and t["is_load"][(j,)] and _progress(t, j, v) == COPIED
        for j in range(SIZES["J"])
    )


def _chosen(relation: Mapping[tuple[int, ...], bool]) -> list[int]:
    return [element for (element,), member in relation.items() if member]


def _lookup(t: Tables, p: Mapping[str, Any]) -> act.Lookup:
    hits = sorted(_chosen(p["hit"]), key=lambda d: t["device_key"][(d,)])
    host_hits = sorted(_chosen(p["host_hit"]), key=lambda h: t["host_key"][(h,)])
    return act.Lookup(p["r"], (tuple(hits), tuple(host_hits)))


def _admit(t: Tables, p: Mapping[str, Any]) -> act.Admit:
    def key(d: int) -> int:
        return int(p["key"][(d,)])

    hits, fresh = sorted(_chosen(p["hit"]), key=key), sorted(_chosen(p["fresh"]), key=key)
    loaded = sorted(_chosen(p["loaded"]), key=lambda h: t["host_key"][(h,)]) if "loaded" in p else []
    return act.Admit(p["r"], act.Admission(tuple(hits), tuple(loaded), tuple(fresh)))


def _launch(t: Tables, p: Mapping[str, Any]) -> act.Launch:
    computes = []
    for r in _chosen(p["computes"]):
        table = [d for d in range(SIZES["D"]) if t["table"][r, d]]
        start = sum(t["computed"][r, d] or _is_through_awaited(t, r, d) for d in table)
        computes.append((r, start, sum(p["part"][r, d] for d in table)))
    stores = []
    for j in range(t["next_job"][()], p["until"]):
        hosts = sorted((h for h in _chosen(p["stored"]) if p["job"][(h,)] == j), key=lambda h: p["key"][(h,)])
        pairs = tuple(Pair(p["source"][(h,)], h, p["key"][(h,)]) for h in hosts)
        stores.append((p["owner"][(j,)] if p["owned"][(j,)] else NONE, pairs))
    return act.Launch(act.Launching(tuple(computes), tuple(stores), (), tuple(_chosen(p["flush"]))))


def _copy(t: Tables, p: Mapping[str, Any], stream: int) -> MachineAction:
    hosts = [h for h in range(SIZES["H"]) if t["job_host"][p["j"], h]]
    hosts.sort(key=lambda h: t["carries"][p["j"], h])
    failing = [position for position, h in enumerate(hosts) if p["fails"][(h,)]]
    if not failing:
        return act.Run(p["v"], stream)
    return act.FailCopy(p["v"], stream, None if len(failing) == len(hosts) else failing[0])


def _is_through_awaited(t: Tables, r: int, d: int) -> bool:
    """The step whose output is awaited computes for the request in that block."""
    g = t["awaited"][()]
    return g >= 0 and t["shares"][g, r] and not t["left"][g, r] and t["share_table"][g, r, d]


def _unowed(t: Tables, p: Mapping[str, Any]) -> MachineAction:
    if p["j"] == t["next_job"][()]:
        return act.ForgeReport(p["v"])
    return act.DuplicateReport(p["v"], p["j"])


def _free_twice(t: Tables, p: Mapping[str, Any]) -> act.FreeTwice:
    if any(t["device_queued"].values()):
        return act.FreeTwice("device")
    return act.FreeTwice("host" if any(t["host_queued"].values()) else "request")
