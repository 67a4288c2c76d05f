"""Plain state: control-plane objects pickle as their class and a tuple of their fields.

An engine's state must be cheap to copy out: a restart of the scheduler reads it back, and a checker takes a copy after
every command. The default for slotted classes builds a dict for each object, which is several times slower.
"""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

_getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def _getter(cls: Any) -> Callable[[Any], tuple[Any, ...]]:
    names = [field.name for field in fields(cls)]
    if len(names) == 1:
        one = attrgetter(names[0])
        return lambda value: (one(value),)
    return attrgetter(*names)


class Plain:
    """Base of a slotted dataclass whose constructor takes every field, in order."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        cls = type(self)
        getter = _getters.get(cls)
        if getter is None:
            getter = _getters[cls] = _getter(cls)
        return cls, getter(self)
