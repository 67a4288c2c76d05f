"""What kvoffload may refuse a soak's commands with, and what every other exception is."""

import pickle
from collections.abc import Mapping
from typing import Final

from kvoffload.errors import (
    DoubleFree,
    Hang,
    NothingToLaunch,
    NotOutstanding,
    NotRunnable,
    OutOfBlocks,
    UnknownRequest,
    WrongPhase,
)
from kvproof.targets.soaked import Violation

UNDOCUMENTED: Final = "work-remaining-keeps-the-engine-stepping"
"""What an exception breaks that no method documents: it is neither an answer nor a refusal (as in `conform`)."""

_REQUEST_REFUSALS: Final = (UnknownRequest, WrongPhase)
REFUSALS: Final[Mapping[str, tuple[type[Exception], ...]]] = {
    "submit": (WrongPhase,),
    "preempt": _REQUEST_REFUSALS,
    "abort": _REQUEST_REFUSALS,
    "promote": (*_REQUEST_REFUSALS, OutOfBlocks),
    "lookup": _REQUEST_REFUSALS,
    "release_lookup": _REQUEST_REFUSALS,
    "admit": (*_REQUEST_REFUSALS, OutOfBlocks),
    "grow": (*_REQUEST_REFUSALS, OutOfBlocks),
    "wake": _REQUEST_REFUSALS,
    "finish": _REQUEST_REFUSALS,
    "stop": _REQUEST_REFUSALS,
    "launch": (NothingToLaunch,),
    "handle_output": (NotRunnable,),
    "expire": (NotOutstanding,),
}
"""What each command may be refused with, as `Engine` documents it. The others are never refused."""


def raised(error: Exception) -> Violation:
    """The violation that an exception is which is no refusal."""
    if isinstance(error, DoubleFree):
        return Violation("no-double-free", f"The engine freed a block twice: {error}.", "raised")
    if isinstance(error, Hang):
        return Violation("everything-drains", f"The streams hang: {error}.", "hang")
    kind = type(error).__name__
    return Violation(
        UNDOCUMENTED,
        f"The engine raised {kind} ({error}), which is no documented refusal of what it was asked.",
        "raised",
        kind,
    )


def changed(state: object, before: bytes) -> bool:
    """Does it differ from what was pickled before? Equal objects may pickle differently, hence the second look."""
    if pickle.dumps(state, pickle.HIGHEST_PROTOCOL) == before:
        return False
    restored: object = pickle.loads(before)
    return restored != state
