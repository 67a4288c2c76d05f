"""Watching an engine: whoever wants to is told of every call that it has answered or refused. Off unless asked for.

For logs, and for whatever else has to know what a serving engine was asked and what came of it. Whoever watches is no
part of the engine's state: a copy of an engine, and one that was restored, are not watched.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple, TypeVar


class Call(NamedTuple):
    """One call of a method of an engine, from outside of it, when it is over.

    method     its name
    arguments  in the order of the method's parameters, defaults that nobody gave at the end left out
    answer     what it answered; None if it was refused
    error      what it raised, which the caller gets as ever; None: nothing
    """

    method: str
    arguments: tuple[Any, ...]
    answer: Any
    error: Exception | None


Watcher = Callable[[Any, Call], None]
"""Is given the engine and the call, on the thread that called, before the caller gets the answer. It must change
nothing, and what it raises goes to the caller."""

Chooser = Callable[[Any], Watcher | None]
"""Is given a new engine, not bound yet, and answers who watches it."""


class Watchable:
    """Base of an engine. watcher: whom it tells of each call; None: nobody."""

    __slots__ = ("watcher",)

    watcher: Watcher | None

    def watched_by(self, watcher: Watcher | None) -> None:
        """From now on it is told of each call, and nobody else; None: nobody is."""
        self.watcher = watcher


_choosers: list[Chooser] = []


@contextmanager
def new_engines_watched(choose: Chooser) -> Iterator[None]:
    """Every engine that is made in here has the watcher that `choose` answers. They nest: the innermost decides."""
    _choosers.append(choose)
    try:
        yield
    finally:
        _choosers.pop()


def watcher_of_new(engine: Watchable) -> Watcher | None:
    """Who watches an engine that is being made; None: nobody."""
    return _choosers[-1](engine) if _choosers else None


_Engine = TypeVar("_Engine", bound=type[Watchable])


def telling(*methods: str) -> Callable[[_Engine], _Engine]:
    """A class decorator: these methods tell the watcher, if there is one. What they call of each other is not told."""

    def changed(engine: _Engine) -> _Engine:
        for name in methods:
            setattr(engine, name, _telling(name, getattr(engine, name)))
        return engine

    return changed


def _telling(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    parameters = signature(method)

    @wraps(method)
    def told(engine: Any, *arguments: Any, **named: Any) -> Any:
        watcher = engine.watcher
        if watcher is None:
            return method(engine, *arguments, **named)
        try:
            engine.watcher = None
            try:
                answer = method(engine, *arguments, **named)
            finally:
                engine.watcher = watcher
        except Exception as error:
            watcher(engine, Call(name, given(engine, arguments, named), None, error))
            raise
        watcher(engine, Call(name, given(engine, arguments, named), answer, None))
        return answer

    def given(engine: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        return parameters.bind(engine, *arguments, **named).args[1:] if named else arguments

    return told
