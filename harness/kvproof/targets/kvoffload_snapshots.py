"""Snapshots of kvoffload: pickles that name a class by a number.

Half of the time of reading a snapshot went into looking up classes by module and name. The numbers are registered in
this process alone, and snapshots never leave it.
"""

import copyreg
import pickle
import sys
from functools import cache
from types import FunctionType
from typing import Any

FIRST_CODE = 0xF000
"""Extension codes from here on: none is taken by anybody whom copyreg knows of, which it would say."""


@cache
def register() -> None:
    """Give each class and function of kvoffload's control plane that is loaded a number."""
    code = FIRST_CODE
    for name in sorted(sys.modules):
        if not name.startswith("kvoffload.") or name.endswith((".host", ".cuda")):
            continue
        for attribute, value in sorted(vars(sys.modules[name]).items()):
            if isinstance(value, type | FunctionType) and value.__module__ == name:
                copyreg.add_extension(name, attribute, code)
                code += 1


def saved(parts: tuple[object, ...]) -> bytes:
    """All of a target's state."""
    register()
    return pickle.dumps(parts, protocol=5)


def restored(snapshot: bytes) -> tuple[Any, ...]:
    """What `saved` of this process was given."""
    parts: tuple[Any, ...] = pickle.loads(snapshot)
    return parts
