"""The specification on concrete tables: whether a transition of the machine is one of the specification.

No solver is asked: the same guards and updates that z3 reasons about compute on Python's values.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kvmodel import actions as act
from kvmodel import policy
from kvmodel.actions import Action as MachineAction
from kvmodel.machine import Machine
from kvmodel.request import DONE, DRAINING, LOADING, WAITING
from kvmodel.rules.report import credited
from kvmodel.rules.report_mark import covered
from kvmodel.rules.reset import answers_true
from kvmodel.setting import Setting
from kvmodel.state import State as MachineState
from kvmodel.state import job_with
from kvmodel.streams import COMPUTE, oldest_compute, oldest_copy
from kvmodel.tiers import names_device, names_host
from kvmodel.transfer_job import (
    ABANDONED,
    FORGOTTEN,
    LIVE,
    LOAD,
    LOST,
    NONE,
    REPORTED,
    STORE,
    Job,
    intact_pairs,
    is_queued,
    publishes_into,
)
from kvspecs.proof.abstraction import Abstract, abstract, counted, differences, elements, vocabulary
from kvspecs.proof.action import Effect, Parameters
from kvspecs.proof.actions import ALL
from kvspecs.proof.invariants import invariants_of

BY_NAME = {action.name: action for action in ALL}

Values = dict[str, Any]


class NotSpecified(ValueError):
    """The machine does something that the specification does not have yet."""


def check_specified(setting: Setting) -> None:
    """Raises NotSpecified for what the specification lacks: blocks at several positions, windows, deadlines, a second
    host tier, workers that die."""
    contract, scope = setting.contract, setting.scope
    if scope.repeats:
        raise NotSpecified("blocks at several positions of one table are not in the specification")
    if scope.window:
        raise NotSpecified("sliding windows are not in the specification")
    if contract.expires:
        raise NotSpecified("deadlines are not in the specification; it waits for what does not come")
    if scope.deaths:
        raise NotSpecified("workers that die are not in the specification")
    if scope.second_blocks:
        raise NotSpecified("a second host tier is not in the specification")


class Occurrence(NamedTuple):
    """An action of the specification with its parameters."""

    name: str
    values: Values


def _set(blocks: Any) -> Callable[..., bool]:
    members = frozenset(blocks)
    return lambda *element: (element[0] if len(element) == 1 else element) in members


def _map(pairs: Mapping[Any, Any], default: Any = -1) -> Callable[..., Any]:
    return lambda *element: pairs.get(element[0] if len(element) == 1 else element, default)


def occurrences(
    setting: Setting, before: MachineState, action: MachineAction, after: MachineState
) -> tuple[Occurrence, ...]:
    """Which actions of the specification a transition of the machine is, and what was chosen in each: one; of a mark,
    that it is heard, and then one for each job that it covers."""
    if isinstance(action, act.ReportMark):
        return _mark(setting, before, action)
    return (_READERS[type(action).__name__](setting, before, action, after),)


def _mark(setting: Setting, before: MachineState, action: act.ReportMark) -> tuple[Occurrence, ...]:
    worker, stream, mark = action
    found = [Occurrence("HearMark", {"v": worker, "load": stream == LOAD, "until": mark + 1})]
    for job in covered(before, worker, stream, mark):
        then = credited(setting, before, job, worker)
        found.append(_report(setting, before, act.Report(worker, job.id), then))
        before = then
    return tuple(found)


def _heard_again(setting: Setting, before: MachineState, action: act.RepeatMark, after: MachineState) -> Occurrence:
    """An earlier mark: one that covers nothing which is still to be reported."""
    return Occurrence("HearMark", {"v": action.worker, "load": action.stream == LOAD, "until": 0})


def _simple(name: str) -> Callable[..., Occurrence]:
    return lambda setting, before, action, after: Occurrence(name, {"r": action.request})


def _lookup(setting: Setting, before: MachineState, action: act.Lookup, after: MachineState) -> Occurrence:
    r = action.request
    pins = after.requests[r].pins
    assert pins is not None
    keys = setting.prompt_keys[r]
    at = {keys[position]: block for position, block in enumerate(pins.device)}
    host_at = {keys[position]: block for position, block in enumerate(pins.host, len(pins.device))}
    return Occurrence(
        "Lookup",
        {"r": r, "hit": _set(pins.device), "host_hit": _set(pins.host), "at": _map(at), "host_at": _map(host_at)},
    )


def _admit(setting: Setting, before: MachineState, action: act.Admit, after: MachineState) -> Occurrence:
    r = action.request
    choice = action.choice or policy.admission(setting, before, r)
    table = after.requests[r].table
    values: Values = {
        "r": r,
        "hit": _set(choice.device),
        "fresh": _set(choice.fresh),
        "key": _map(dict(zip(table, setting.total_keys[r], strict=False)), 0),
    }
    if not choice.host:
        return Occurrence("Admit", values)
    pairs = after.jobs[-1].pairs
    values |= {
        "loaded": _set(pair.source for pair in pairs),
        "into": _map({pair.source: pair.destination for pair in pairs}),
        "target": _set(pair.destination for pair in pairs),
        "out": _map({pair.destination: pair.source for pair in pairs}),
    }
    return Occurrence("AdmitWithLoad", values)


def _grow(setting: Setting, before: MachineState, action: act.Grow, after: MachineState) -> Occurrence:
    r = action.request
    old, new = before.requests[r].table, after.requests[r].table
    keys = dict(zip(new, setting.total_keys[r], strict=False))
    return Occurrence("Grow", {"r": r, "fresh": _set(new[len(old) :]), "key": _map(keys, 0)})


def _launch(setting: Setting, before: MachineState, action: act.Launch, after: MachineState) -> Occurrence:
    choice = action.choice or policy.launching(setting, before)
    tables = {number: before.requests[number].table[:end] for number, _, end in choice.computes}
    last = before.steps[-1].id if before.steps else -1
    made = [job for job in after.jobs if job.id >= before.next_job]
    pairs = [(job.id, pair) for job in made for pair in job.pairs]
    keys = {
        (number, block): setting.total_keys[number][position]
        for number, request in enumerate(before.requests)
        for position, block in enumerate(request.table)
    }
    owners = {
        pair.destination: number
        for _, pair in pairs
        for number in range(len(before.requests))
        if keys.get((number, pair.source)) == pair.key
    }
    return Occurrence(
        "Launch",
        {
            "compute": bool(choice.computes),
            "g": last + 1,
            "last": last,
            "computes": _set(tables),
            "part": _set((number, block) for number, table in tables.items() for block in table),
            "used": _set(block for table in tables.values() for block in table),
            "user": _map({block: number for number, table in tables.items() for block in table}, 0),
            "stored": _set(pair.destination for _, pair in pairs),
            "source": _map({pair.destination: pair.source for _, pair in pairs}),
            "key": _map({pair.destination: pair.key for _, pair in pairs}, 0),
            "source_owner": _map(owners, 0),
            "job": _map({pair.destination: job for job, pair in pairs}),
            "is_source": _set(pair.source for _, pair in pairs),
            "stored_in": _map({pair.source: pair.destination for _, pair in pairs}),
            "until": after.next_job,
            "owned": _set(job.id for job in made if job.request != NONE),
            "owner": _map({job.id: job.request for job in made}),
            "flush": _set(choice.flush),
        },
    )


def _run(setting: Setting, before: MachineState, action: act.Run, after: MachineState) -> Occurrence:
    v = action.worker
    if action.stream != COMPUTE:
        return _copy(before, v, action.stream, ())
    step = oldest_compute(before, v)
    assert step is not None
    others = [x for x, ran in enumerate(step.ran) if x != v and not ran]
    last = all(other.id != step.id for other in after.steps)
    return Occurrence("RunCompute", {"g": step.id, "v": v, "last": last, "other": others[0] if others else v})


def _copy(before: MachineState, v: int, stream: int, failing: tuple[int, ...] | None) -> Occurrence:
    """failing: positions of the pairs that fail; None: all do."""
    job = oldest_copy(before, v, stream)
    assert job is not None
    hosts = [pair.destination if stream == STORE else pair.source for pair in job.pairs]
    fails = hosts if failing is None else [hosts[position] for position in failing]
    return Occurrence("RunStore" if stream == STORE else "RunLoad", {"j": job.id, "v": v, "fails": _set(fails)})


def _fail_copy(setting: Setting, before: MachineState, action: act.FailCopy, after: MachineState) -> Occurrence:
    failing = None if action.position is None else (action.position,)
    return _copy(before, action.worker, action.stream, failing)


def _report(setting: Setting, before: MachineState, action: act.Report, after: MachineState) -> Occurrence:
    job = job_with(before, action.job)
    assert job is not None
    values: Values = {"j": job.id, "v": action.worker}
    if job.view == FORGOTTEN:
        return Occurrence("ReportForgotten", values | _settling(job, action.worker))
    others = [x for x, progress in enumerate(job.progress) if x != action.worker and progress != REPORTED]
    if others:
        return Occurrence("ReportPart", values | {"other": others[0]})
    if job.view == ABANDONED:
        return Occurrence("CompleteAbandoned", values)
    load = job.direction == LOAD
    old, new = (before.device, after.device) if load else (before.host, after.host)
    published = [block for block, key in enumerate(new.keys) if key and old.keys[block] != key]
    at = {pair.destination: new.keys.index(pair.key) for pair in job.pairs if pair.key in new.keys}
    values |= {"publish": _set(published), "at": _map(at)}
    if not load or not job.failed:
        return Occurrence("CompleteLoad" if load else "CompleteStore", values)
    let_go = {r: request.pins for r, request in enumerate(before.requests) if request.pins != after.requests[r].pins}
    pinned = [pins for pins in let_go.values() if pins is not None]
    values |= {
        "brought": _set(pair.destination for pair in intact_pairs(job)),
        "again": _set(let_go),
        "pins": _map(Counter(block for pins in pinned for block in pins.device), 0),
        "host_pins": _map(Counter(block for pins in pinned for block in pins.host), 0),
    }
    return Occurrence("CompleteFailedLoad", values)


def _settling(job: Job, worker: int) -> Values:
    others = [x for x, progress in enumerate(job.progress) if x != worker and progress not in (REPORTED, LOST)]
    return {"last": not others, "other": others[0] if others else worker}


def _lose(setting: Setting, before: MachineState, action: act.LoseReport, after: MachineState) -> Occurrence:
    job = job_with(before, action.job)
    assert job is not None
    return Occurrence("LoseReport", {"j": job.id, "v": action.worker} | _settling(job, action.worker))


def _handle_output(setting: Setting, before: MachineState, action: act.HandleOutput, after: MachineState) -> Occurrence:
    step = next(step for step in before.steps if not step.handled)
    behind = [x for x, ran in enumerate(step.ran) if not ran]
    old, new = before.device, after.device
    published = [block for block, key in enumerate(new.keys) if key and old.keys[block] != key]
    at = {
        block: new.keys.index(key)
        for share in step.shares
        for block, key in zip(share.table, setting.total_keys[share.request], strict=False)
        if key in new.keys
    }
    values = {
        "v": step.ran.index(True),
        "last": not behind,
        "other": behind[0] if behind else 0,
        "publish": _set(published),
        "at": _map(at),
    }
    return Occurrence("HandleOutput", values)


def _leave(setting: Setting, before: MachineState, action: Any, after: MachineState) -> Occurrence:
    r = action.request
    request = before.requests[r]
    again = not isinstance(action, act.Abort | act.Stop)
    if request.phase == WAITING:
        return Occurrence("AbortWaiting", {"r": r})
    if request.phase == DRAINING:
        return Occurrence("AbortDraining", {"r": r})
    if request.phase != LOADING:
        return Occurrence("LeaveRunning", {"r": r, "again": again})
    if not request.jobs:
        return Occurrence("LeaveLoaded", {"r": r, "again": again})
    job = job_with(before, request.jobs[0])
    assert job is not None
    name = "LeaveQueuedLoad" if job.progress[0] == 0 else "LeaveLoadInFlight"
    return Occurrence(name, {"r": r, "j": job.id, "again": again})


def _device_first(job: Job) -> list[tuple[int, int]]:
    """Its pairs as device block and host block."""
    if job.direction == LOAD:
        return [(pair.destination, pair.source) for pair in job.pairs]
    return [(pair.source, pair.destination) for pair in job.pairs]


def _reset(setting: Setting, before: MachineState, action: act.Reset, after: MachineState) -> Occurrence:
    answer = answers_true(setting, after, action) if action.answer is None else action.answer
    heard = {
        job.id: [x for x, progress in enumerate(job.progress) if progress not in (REPORTED, LOST)]
        for job in before.jobs
    }
    with_references = [job.id for job in after.jobs if job.view != FORGOTTEN]
    launched = [job for job in before.jobs if job.view == LIVE and not is_queued(job)]
    pairs = [pair for job in launched if publishes_into(job, action.tiers) for pair in _device_first(job)]
    survivors = [(r, block) for r, request in enumerate(after.requests) for block in request.table]
    values = {
        "device": names_device(action.tiers),
        "host": names_host(action.tiers),
        "invalidate": action.meaning == "invalidate",
        "keep": action.requests == "keep",
        "answer": answer,
        "job": with_references[0] if with_references else -1,
        "survivor": survivors[0][0] if survivors else 0,
        "block": survivors[0][1] if survivors else 0,
        "settled": _set(job for job, workers in heard.items() if not workers),
        "unheard": _map({job: workers[0] for job, workers in heard.items() if workers}, 0),
        "dropped": _map(Counter(d for d, _ in pairs) if setting.contract.pins else {}, 0),
        "host_dropped": _map(Counter(h for _, h in pairs), 0),
    }
    return Occurrence("Reset", values)


def _unowed(setting: Setting, before: MachineState, action: Any, after: MachineState) -> Occurrence:
    job = action.job if isinstance(action, act.DuplicateReport) else before.next_job
    return Occurrence("ReportUnowed", {"j": job, "v": action.worker})


def _free_twice(setting: Setting, before: MachineState, action: act.FreeTwice, after: MachineState) -> Occurrence:
    d = before.device.free[0] if before.device.free else 0
    h = before.host.free[0] if before.host.free else 0
    ended = [r for r, request in enumerate(before.requests) if request.phase == DONE]
    return Occurrence("FreeTwice", {"d": d, "h": h, "r": ended[0] if ended else 0})


_READERS: Mapping[str, Callable[..., Occurrence]] = {
    "Submit": _simple("Submit"),
    "Lookup": _lookup,
    "ReleaseLookup": _simple("ReleaseLookup"),
    "Admit": _admit,
    "Grow": _grow,
    "Launch": _launch,
    "Run": _run,
    "Report": _report,
    "Wake": _simple("Wake"),
    "HandleOutput": _handle_output,
    "PreemptUnderPressure": _leave,
    "Preempt": _leave,
    "Finish": _simple("Finish"),
    "Stop": _leave,
    "Abort": _leave,
    "Reset": _reset,
    "DuplicateReport": _unowed,
    "LoseReport": _lose,
    "ForgeReport": _unowed,
    "FreeTwice": _free_twice,
    "RepeatMark": _heard_again,
    "LoseMark": lambda setting, before, action, after: Occurrence("LoseMark", {"v": action.worker}),
    "FailCopy": _fail_copy,
}
"""By the name of the machine's action."""


class Interpreter:
    """Holds transitions of one machine against the specification. `alter` changes an effect: a bug, planted."""

    def __init__(self, machine: Machine, alter: Callable[..., Effect] | None = None) -> None:
        check_specified(machine.setting)
        self.setting = machine.setting
        self.w = vocabulary(machine.setting)
        self.invariants = invariants_of(machine.setting.contract.discipline)
        self._alter = alter

    def tables(self, state: MachineState) -> Abstract:
        return abstract(self.setting, self.w, state)

    def broken(self, state: Abstract) -> Iterator[str]:
        """The invariants that do not hold, each with the elements for which it does not."""
        for invariant in self.invariants:
            for chosen in elements(state.universe, invariant.sorts):
                if not invariant.formula(self.w, state.state, *chosen):
                    yield f"{invariant.name}({', '.join(map(str, chosen))})"

    def mismatches(
        self, before: MachineState, action: MachineAction, after: MachineState, tables: Abstract, tables_after: Abstract
    ) -> Iterator[str]:
        """Where the transition is none of the specification: guards that do not hold, entries that differ."""
        universe = _with_made(tables.universe, tables_after.universe)
        state = tables.state
        taken = occurrences(self.setting, before, action, after)
        for name, values in taken:
            p = Parameters(values)
            effect = BY_NAME[name].effect(self.w, state, p)
            if self._alter is not None:
                effect = self._alter(name, self.w, state, p, effect)
            yield from _refused(name, effect, universe)
            state = replace(effect.after, counts=counted(self.w, effect.after, universe))
        for difference in differences(self.w, state, tables_after):
            yield f"{taken[-1].name}: {difference}"


def _refused(name: str, effect: Effect, universe: Mapping[str, Any]) -> Iterator[str]:
    """Guards and promises that do not hold, and sizes that are wrong."""
    for clause in (*effect.guard, *effect.promises):
        for chosen in elements(universe, clause.sorts):
            if not clause.formula(*chosen):
                yield f"{name}: guard {clause.name}({', '.join(map(str, chosen))}) does not hold"
    for number, few in effect.chosen.items():
        for block in universe[few.of]:
            if few.size(block) != sum(bool(few.member(x, block)) for x in universe[few.counted]):
                yield f"{name}: {number}({block}) is not how many there are"


def _with_made(before: Mapping[str, tuple[int, ...]], after: Mapping[str, tuple[int, ...]]) -> Mapping[str, Any]:
    """All elements that there are before or after."""
    return {sort: tuple(sorted({*before[sort], *after[sort]})) for sort in before}
