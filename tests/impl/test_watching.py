"""Whoever watches an engine is told of each call from outside of it, with its answer or its refusal. Off by default."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.config import Config
from kvoffload.engine import Engine
from kvoffload.errors import WrongPhase
from kvoffload.watching import Call, Watchable, new_engines_watched, telling


def watched() -> tuple[Engine, list[Call]]:
    told: list[Call] = []
    engine = Engine.create(Config("pinning", 4, 4))
    engine.watched_by(lambda _, call: told.append(call))
    return engine, told


def test_nobody_watches_unless_asked_to() -> None:
    assert Engine.create(Config("pinning", 4, 4)).watcher is None


def test_every_method_is_told_but_these() -> None:
    public = {name: method for name, method in vars(Engine).items() if callable(method) and not name.startswith("_")}
    assert {name for name, method in public.items() if not hasattr(method, "__wrapped__")} == {
        *("bind", "has_work", "take_events", "pressure_victim"),
        *("can_promote", "can_lookup", "can_admit", "can_grow", "can_wake", "can_finish", "can_launch"),
        "can_handle_output_of",
    }


def test_a_call_is_told_with_its_arguments_and_its_answer() -> None:
    engine, told = watched()
    engine.submit(1, (7,), total=(7,))
    report = engine.schedule(may_launch=False)
    assert engine.reset("evict", tiers="host", requests="keep") is True
    assert told == [
        Call("submit", (1, (7,), (7,)), None, None),
        Call("schedule", (False,), report, None),
        Call("reset", ("evict", "keep", "host"), True, None),
    ]


def test_what_a_call_does_inside_of_the_engine_is_not_told_again() -> None:
    engine, told = watched()
    engine.submit(1, (7,), (7,))
    engine.schedule()
    assert [call.method for call in told] == ["submit", "schedule"]


def test_a_refusal_is_told_and_raised() -> None:
    engine, told = watched()
    engine.submit(1, (7,), (7,))
    with pytest.raises(WrongPhase) as refused:
        engine.submit(1, (7,), (7,))
    assert told[-1] == Call("submit", (1, (7,), (7,)), None, refused.value)
    engine.abort(1)
    assert told[-1].method == "abort"


def test_who_hears_enough_is_told_no_more_after_an_answer_or_after_a_refusal() -> None:
    engine, _ = watched()
    told: list[str] = []

    def once(_: Engine, call: Call) -> None:
        told.append(call.method)
        engine.watched_by(None)

    engine.watched_by(once)
    engine.submit(1, (7,), (7,))
    assert engine.watcher is None
    engine.watched_by(once)
    with pytest.raises(WrongPhase):
        engine.submit(1, (7,), (7,))
    assert engine.watcher is None
    engine.abort(1)
    assert told == ["submit", "submit"]


def test_a_copy_is_not_watched() -> None:
    engine, told = watched()
    other = pickle.loads(pickle.dumps(engine))
    other.submit(1, (7,), (7,))
    assert (other.watcher, told) == (None, [])


def test_new_engines_are_watched_by_whom_the_innermost_choice_says() -> None:
    told: list[str] = []

    def named(name: str) -> Callable[[Watchable], Any]:
        return lambda engine: lambda _, call: told.append(f"{name} {call.method}")

    with new_engines_watched(named("outer")):
        with new_engines_watched(lambda engine: None):
            Engine.create(Config("pinning", 4, 4)).submit(1, (7,), (7,))
        Engine.create(Config("pinning", 4, 4)).submit(1, (7,), (7,))
    Engine.create(Config("pinning", 4, 4)).submit(1, (7,), (7,))
    assert told == ["outer submit"]


def test_who_chooses_is_given_the_new_engine() -> None:
    given: list[Watchable] = []
    with new_engines_watched(given.append):
        engine = Engine.create(Config("pinning", 4, 4))
    assert len(given) == 1
    assert given[0] is engine


def test_a_class_of_another_kind_can_be_watched_too() -> None:
    """Of its methods those that are named, with what was given by name among the others."""

    @telling("add", "halve")
    class Counter(Watchable):
        def __init__(self) -> None:
            self.watcher = None
            self.count = 0

        def add(self, number: int, times: int = 1) -> int:
            self.count += number * times
            return self.count

        def halve(self) -> int:
            return self.add(-self.count // 2)

        def clear(self) -> None:
            self.count = 0

    counter, told = Counter(), list[Call]()
    assert counter.add(1) == 1
    counter.watched_by(lambda one, call: told.append(call) if one is counter else None)
    assert (counter.add(2, times=3), counter.add(1), counter.halve(), counter.clear()) == (7, 8, 4, None)
    with pytest.raises(TypeError) as refused:
        counter.add()  # type: ignore[call-arg]  # it is refused, and told as it was called
    assert told == [
        Call("add", (2, 3), 7, None),
        Call("add", (1,), 8, None),
        Call("halve", (), 4, None),
        Call("add", (), None, refused.value),
    ]
