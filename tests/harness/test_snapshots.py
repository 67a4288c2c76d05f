"""Snapshots of kvoffload hold all of its state, and nothing that happens afterwards changes them."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import pytest

from kvmodel import Contract, Machine
from kvmodel.contract import Discipline
from kvoffload.block_pool import BlockPool
from kvoffload.config import Config
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.engine import Engine
from kvoffload.scheduler import Scheduler
from kvproof.scopes import parse_scope
from kvproof.search.product import Product
from kvproof.targets.command import Command
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.kvoffload_control import FIELDS, UnknownField

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


class OtherScheduler(Scheduler):
    __slots__ = ()


class OtherPool(BlockPool):
    __slots__ = ()


class OtherConnector(FencingConnector):
    __slots__ = ()


@dataclass(slots=True)
class Remembering(FencingConnector):
    """Has a field that no other connector has."""

    refused: int = 0


class Noting(FencingConnector):
    """Has whatever is written on it."""


def other_scheduler(target: Ledger) -> None:
    old = target.engine.scheduler
    target.engine.scheduler = OtherScheduler(*[getattr(old, field.name) for field in fields(Scheduler)])


def other_pool(target: Ledger) -> None:
    old = target.engine.device_pool
    target.engine.scheduler.device = target.engine.connector.device = OtherPool(old.counts, old.queue, old.cache)


@pytest.mark.parametrize("change", [other_scheduler, other_pool])
def test_what_is_of_another_class_is_so_when_it_is_put_back(change: Callable[[Ledger], None]) -> None:
    target = busy()
    change(target)
    before = type(target.engine.scheduler), type(target.engine.device_pool)
    snapshot = target.save()
    assert isinstance(snapshot, bytes)
    target.restore(snapshot)
    assert (type(target.engine.scheduler), type(target.engine.device_pool)) == before


def connecting(connector: type[FencingConnector]) -> tuple[Machine, Ledger]:
    class Connecting(Ledger):
        def create(self, config: Config) -> Engine:
            return Engine.create(config, connector)

    machine = Machine(Contract("fencing"), parse_scope("s1")[1])
    return machine, Connecting(machine.setting)


def test_another_connector_with_no_more_state_is_put_back_as_such() -> None:
    _, target = connecting(OtherConnector)
    snapshot = target.save()
    assert isinstance(snapshot, tuple)
    target.restore(snapshot)
    assert type(target.engine.connector) is OtherConnector


def test_a_field_of_another_connector_is_put_back_and_ends_the_search() -> None:
    machine, target = connecting(Remembering)
    snapshot = target.save()
    target.engine.connector.refused = 3  # type: ignore[attr-defined]
    assert target.save() != snapshot
    target.restore(snapshot)
    assert target.engine.connector.refused == 0  # type: ignore[attr-defined]
    with pytest.raises(UnknownField, match=r"^Remembering\.refused is not known to "):
        Product(machine, target, composites=False).search(lambda: False, lambda said: None)


def test_an_attribute_that_is_no_field_ends_the_search() -> None:
    machine, target = connecting(Noting)
    assert isinstance(target.save(), tuple)
    target.engine.connector.refused = 3  # type: ignore[attr-defined]
    with pytest.raises(UnknownField, match=r"^Noting\.refused is not known to "):
        Product(machine, target, composites=False).search(lambda: False, lambda said: None)
