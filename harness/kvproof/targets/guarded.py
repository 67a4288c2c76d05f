"""Calls into a target. Whatever it raises, and what it answers that is no answer, is a crash: a violation with a trace.

Engines of checking call a target through here and nowhere else, so that none of them ends with a broken target. The
one exception that comes through is Unreadable, by which an adapter says that it does not know the engine.
"""

import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar, cast

from kvmodel import State
from kvproof.obligations.books import Unreadable
from kvproof.targets import journal
from kvproof.targets.command import Command
from kvproof.targets.outcome import MALFORMED, Answer, Crashed, Outcome, Refused
from kvproof.targets.target import Abstracting, Offering, Target
from kvproof.targets.view import View

Answered = TypeVar("Answered")

PARTS = ("exact", "perform", "view", "close")

_OUTCOMES = (Answer, Refused, Crashed)
_STATES = (State, Crashed)

PATIENCE_S = 10.0
"""How long one call may take where it is watched, unless the target says otherwise in `patience_s`."""

IMPATIENCE_S = 0.5
"""The same once a call has hung: what follows is the shrinking of what led there, where many more calls will hang."""


class _NoAnswer(BaseException):
    """A watched call has taken too long. No Exception, so that a target does not take it for one of its own."""


class _Watch:
    """Whether calls are watched, and whether one has hung. patience_s: of every target, whatever it says; or None."""

    on = False
    hung = False
    patience_s: float | None = None

    def allowed(self, patience_s: float) -> float:
        """How long a call may take, where its target would allow so much."""
        if self.patience_s is not None:
            patience_s = self.patience_s
        return min(patience_s, IMPATIENCE_S) if self.hung else patience_s

    def start(self, patience_s: float) -> None:
        if self.on:
            journal.calling(patience_s)
            signal.setitimer(signal.ITIMER_REAL, patience_s)

    def stop(self) -> None:
        if self.on:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            journal.calling(0.0)


_watch = _Watch()


def watch(patience_s: float | None = None) -> None:
    """From now on interrupt calls that do not come back: a hang is a violation too.

    patience_s  how long one call of any target may take, whatever the target says

    For the main thread of a process that has nothing else to do with SIGALRM. Only Python code can be interrupted;
    where a journal is kept, whoever reads it ends the process in any other.
    """

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise _NoAnswer

    signal.signal(signal.SIGALRM, interrupt)
    _watch.on = True
    _watch.patience_s = patience_s


def hurry() -> None:
    """A call has hung: from now on wait for none longer than IMPATIENCE_S."""
    _watch.hung = True


def started(open_target: Callable[[], Target]) -> Target | Crashed:
    """A target freshly opened."""
    target = _guarded(open_target)
    if isinstance(target, Crashed):
        return target
    parts = [("books" if part == "view" and hasattr(target, "watched") else part) for part in PARTS]
    missing = [part for part in parts if not hasattr(target, part)]
    if missing:
        return Crashed(MALFORMED, f"{type(target).__name__} is no target, it has no {' and no '.join(missing)}")
    return cast(Target, target)


def performed(target: Target, command: Command) -> tuple[Outcome, View]:
    """One command carried out, and what is seen after it. After a crash nothing is looked at."""
    outcome = carried_out(target, command)
    if isinstance(outcome, Crashed):
        return outcome, View()
    view = seen(target)
    return (view, View()) if isinstance(view, Crashed) else (outcome, view)


def carried_out(target: Target, command: Command) -> Outcome:
    """One command carried out."""
    journal.ahead(command)
    outcome = _guarded(lambda: target.perform(command), _patience(target))
    if isinstance(outcome, _OUTCOMES):
        return outcome
    return Crashed(MALFORMED, f"perform answered {_shown(outcome)}, which is no Answer, Refused or Crashed")


def seen(target: Target) -> View | Crashed:
    """What is seen now."""
    view = _guarded(target.view, _patience(target))
    if isinstance(view, View | Crashed):
        return view
    return Crashed(MALFORMED, f"view answered {_shown(view)}, which is no View")


def own_state(target: Abstracting, view: View) -> State | Crashed:
    """The target's own state, in the terms of the properties."""
    own = _guarded(lambda: target.own_state(view), _patience(target))
    if isinstance(own, _STATES):
        return own
    return Crashed(MALFORMED, f"own_state answered {_shown(own)}, which is no State")


def asked_of_target(question: Callable[[], Answered]) -> Answered | Crashed:
    """A question about what a target has shown: what it shows may make no sense, so that it cannot be answered."""
    return cast("Answered | Crashed", _guarded(question))


def offered(target: Offering) -> frozenset[tuple[object, ...]] | Crashed:
    """What the target's scheduler would do next."""
    offers = _guarded(target.offers, _patience(target))
    if isinstance(offers, Crashed):
        return offers
    if isinstance(offers, frozenset) and all(isinstance(o, tuple) and o and isinstance(o[0], str) for o in offers):
        return offers
    return Crashed(MALFORMED, f"offers answered {_shown(offers)}, which is no frozenset of keys of actions")


def guarded(call: Callable[[], object]) -> object:
    """What a call into a target returns, or the crash that it is."""
    return _guarded(call)


def _patience(target: object) -> float:
    patience: float = getattr(target, "patience_s", PATIENCE_S)
    return patience


def _guarded(call: Callable[[], object], patience_s: float = PATIENCE_S) -> object:
    patience_s = _watch.allowed(patience_s)
    try:
        try:
            _watch.start(patience_s)
            return call()
        finally:
            _watch.stop()
    except Unreadable:  # the adapter is at fault, and says so
        raise
    except _NoAnswer as error:  # perhaps just when the call had come back: it was late
        _watch.hung = True
        return Crashed("Hang", f"no answer within {patience_s:g} s{_place(error)}", _function(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (to find what a target raises is what we are here for)
        return Crashed(type(error).__name__, f"{_words(error)}{_place(error)}", _function(error))


def _words(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 (the error is of the target, and so is its text)
        text = ""
    return f"{text:.200}" if text else "without a text"


def _place(error: BaseException) -> str:
    frame = _frame(error)
    return f" ({Path(frame.filename).name}:{frame.lineno})" if frame is not None else ""


def _function(error: BaseException) -> str:
    frame = _frame(error)
    return frame.name if frame is not None else ""


def _frame(error: BaseException) -> traceback.FrameSummary | None:
    """Where it was raised: the innermost frame that is not of this module."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    return frames[-1] if frames else None


def _shown(value: object) -> str:
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001 (a repr of the target)
        return f"a {type(value).__name__}"
