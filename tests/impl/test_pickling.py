"""The control plane is plain data: it pickles, goes on from where it was, and hides nothing in attributes."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import pytest

from kvoffload.config import Discipline, StoreMode
from kvoffload.plain import Plain
from kvoffload.runtime import Runtime

Make = Callable[..., Any]


@dataclass(slots=True)
class Alone(Plain):
    """Its only field may well be a tuple itself."""

    field: tuple[int, ...]


def values(value: object, seen: set[int] | None = None) -> Iterator[object]:
    """Every object reachable from a value, through fields and containers."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    inner: list[object] = []
    if is_dataclass(value):
        inner = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        inner = list(value)
    for item in inner:
        yield from values(item, seen)


def busy(s: Any) -> None:
    """Requests of several phases, jobs in flight, a launched step, pins."""
    s.submit(1, "ab")
    s.submit(2, "xy", "z")
    s.serve()
    s.submit(3, "ab", "c")
    s.submit(4, "p")
    s.submit(5, "xy")
    s.engine.lookup(5)
    s.runtime.schedule()
    s.runtime.schedule()
    s.engine.preempt(4)


modes = pytest.mark.parametrize(
    ("discipline", "store_mode"),
    [("pinning", "eager"), ("pinning", "lazy"), ("fencing", "eager"), ("fencing", "lazy")],
)


@modes
def test_an_engine_survives_pickling_and_goes_on_alike(
    serving: Make, discipline: Discipline, store_mode: StoreMode
) -> None:
    s = serving(discipline, 6, 5, store_mode=store_mode, workers=2)
    busy(s)
    engine, ledger = pickle.loads(pickle.dumps((s.engine, s.ledger)))
    assert engine == s.engine
    assert ledger == s.ledger
    assert engine.connector.device is engine.device_pool
    other = Runtime(engine, ledger)
    for _ in range(20):
        assert other.step() == s.runtime.step()
        for lane in s.ledger.runnable():
            s.ledger.run(*lane)
            ledger.run(*lane)
    assert engine == s.engine
    assert ledger == s.ledger
    assert not engine.has_work()


@modes
def test_a_copy_shares_nothing_with_its_original(serving: Make, discipline: Discipline, store_mode: StoreMode) -> None:
    s = serving(discipline, 6, 5, store_mode=store_mode)
    busy(s)
    taken = pickle.dumps(s.engine)
    s.serve()
    assert pickle.dumps(pickle.loads(taken)) == taken


@modes
def test_all_of_the_state_is_in_fields_of_plain_types(
    serving: Make, discipline: Discipline, store_mode: StoreMode
) -> None:
    s = serving(discipline, 6, 5, store_mode=store_mode)
    busy(s)
    for value in values((s.engine, s.ledger)):
        assert isinstance(value, Enum) or not getattr(value, "__dict__", None), value
        assert is_dataclass(value) or isinstance(value, int | str | tuple | list | dict | set | Enum | None), value
        if is_dataclass(value):
            with pytest.raises((AttributeError, TypeError)):
                value.stray = 1  # type: ignore[attr-defined]


def test_a_class_with_one_field_pickles_as_others_do() -> None:
    assert Alone((4, 2)).__reduce__() == (Alone, ((4, 2),))
    assert pickle.loads(pickle.dumps([Alone((4, 2)), Alone(())])) == [Alone((4, 2)), Alone(())]


def test_neither_the_control_plane_nor_the_ledger_imports_torch() -> None:
    code = (
        "import sys, kvoffload, kvoffload.engine, kvoffload.runtime, kvoffload.devices.ledger\n"
        "sys.exit(any(name.split('.')[0] in ('torch', 'kvmodel', 'kvproof', 'kvspecs') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
