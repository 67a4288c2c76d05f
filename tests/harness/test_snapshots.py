"""Snapshots of kvoffload hold all of its state, and nothing that happens afterwards changes them."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from kvmodel import Contract, Machine
from kvmodel.contract import Discipline
from kvproof.scopes import parse_scope
from kvproof.targets.command import Command
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.kvoffload_control import FIELDS

C = Command
BUSY = (
    *(C("submit", (0,)), C("submit", (1,)), C("admit", (0,)), C("launch"), C("run", (1, "compute"))),
    *(C("run", (0, "compute")), C("run", (1, "store")), C("handle_output"), C("reset", ("invalidate", "preempt"))),
    *(C("admit", (0,)), C("launch")),
)
"""Two requests, a step that is launched, stores of which one worker has run one; and a reset lies behind."""


def busy(discipline: Discipline = "fencing", scope: str = "s4,device=4,host=4", **modes: Any) -> Ledger:
    machine = Machine(Contract(discipline, **modes), parse_scope(scope)[1])
    target = Ledger(machine.setting)
    for command in BUSY:
        target.perform(command)
    return target


def everything(target: Ledger) -> bytes:
    return pickle.dumps((target.engine, target.device, target.runtime.workers[0].marks, target.announced))


@pytest.mark.parametrize("reports", ["per-job", "marks"])
@pytest.mark.parametrize("discipline", ["pinning", "fencing"])
def test_what_is_put_back_is_what_was_saved(discipline: Discipline, reports: str) -> None:
    target = busy(discipline, reports=reports)
    snapshot = target.save()
    assert isinstance(snapshot, tuple)
    view, whole = target.view(), everything(target)
    target.perform(C("run", (0, "compute")))
    target.perform(C("reset", ("evict", "preempt")))
    assert target.save() != snapshot
    target.restore(snapshot)
    assert target.save() == snapshot
    assert target.view() == view
    assert everything(target) == whole


def reachable(part: object) -> Iterator[Any]:
    """Every object of kvoffload's classes in a part of its state."""
    if is_dataclass(part):
        yield part
        for field in fields(part):
            yield from reachable(getattr(part, field.name))
    elif isinstance(part, dict):
        for value in part.values():
            yield from reachable(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from reachable(value)


@pytest.mark.parametrize("cls", FIELDS, ids=lambda cls: cls.__name__)
def test_no_field_is_left_out(cls: type) -> None:
    """Another value in any one field of kvoffload is another snapshot."""
    discipline: Discipline = "pinning" if cls.__name__ == "PinningConnector" else "fencing"
    reports = "marks" if cls.__name__ in ("WorkerMarks", "StreamMark") else "per-job"
    target = busy(discipline, reports=reports)
    snapshot = target.save()
    marks = [worker.marks for worker in target.runtime.workers]
    part = next(part for part in reachable([target.engine, target.device, marks]) if type(part) is cls)
    for field in fields(cls):
        before = getattr(part, field.name)
        setattr(part, field.name, other(before))
        assert target.save() != snapshot, field.name
        setattr(part, field.name, before)
    assert target.save() == snapshot


def other(value: Any) -> Any:
    """Another value of the same type, as far as that goes."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value, 1]
    if isinstance(value, set):
        return value ^ {0}
    if isinstance(value, dict):
        return dict(list(value.items())[:-1]) if value else {0: 0}
    if is_dataclass(value):
        return None
    return ("other",)


def shared_set(target: Ledger) -> None:
    first, second = target.engine.requests.values()
    second.jobs = first.jobs


def list_in_a_share(target: Ledger) -> None:
    request = target.engine.requests[0]
    target.engine.scheduler.pipeline[0].shares[0].blocks = request.table  # type: ignore[assignment]


@pytest.mark.parametrize("misshape", [shared_set, list_in_a_share])
def test_what_is_in_two_places_is_still_one_thing_when_it_is_put_back(misshape: Callable[[Ledger], None]) -> None:
    target = busy()
    misshape(target)
    snapshot = target.save()
    assert isinstance(snapshot, bytes)
    target.restore(snapshot)
    first, second = target.engine.requests.values()
    if misshape is shared_set:
        assert second.jobs is first.jobs
    else:
        assert target.engine.scheduler.pipeline[0].shares[0].blocks is first.table
