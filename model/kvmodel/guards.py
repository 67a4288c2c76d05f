"""Guards: the named yes-or-no questions that rules ask. Each must be seen to answer both (`kvproof check` counts)."""

from collections.abc import Callable
from typing import TypeVar

_Question = TypeVar("_Question", bound=Callable[..., bool])

GUARDS: dict[str, Callable[..., bool]] = {}


def guard(question: _Question) -> _Question:
    """Register a question under `module.name`; the function itself is unchanged, so it costs nothing to ask."""
    GUARDS[f"{question.__module__.removeprefix('kvmodel.')}.{question.__name__}"] = question
    return question
