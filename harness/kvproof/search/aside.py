"""Aside: work that a forked process does meanwhile. It has all that this one has, and answers what can be pickled."""

import os
import pickle
import signal
import traceback
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from kvproof.child import end_with_parent

Answer = TypeVar("Answer")


class Aside(Generic[Answer]):
    """One piece of work, begun at once. Its `answer` is asked for once, or it is called off.

    Not for a process with threads, and not for code that is not ours: the other process ends without tidying up. Where
    the system can (Linux), it ends when this one does, however that ends.
    """

    def __init__(self, work: Callable[[], Answer]) -> None:
        here, there = os.pipe()
        self._process = os.fork()
        if not self._process:
            os.close(here)
            _work(work, there)
        os.close(there)
        self._here = here

    def answer(self) -> Answer:
        """Waits for it. Raises RuntimeError, with the traceback, if the work raised, or if its process was killed."""
        with open(self._here, "rb") as told:
            said = told.read()
        _, status = os.waitpid(self._process, 0)
        if status:
            how = os.waitstatus_to_exitcode(status)
            raise RuntimeError(f"a process that shares the search ended with status {how}")
        raised, answer = pickle.loads(said)
        if raised:
            raise RuntimeError(f"a process that shares the search raised:\n{raised}")
        found: Answer = answer
        return found

    def call_off(self) -> None:
        """Its answer is not wanted any more."""
        os.close(self._here)
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


def _work(work: Callable[[], object], there: int) -> NoReturn:
    """In the other process. Whoever waits for the ends of pipes of the first one does not wait for this one too."""
    end_with_parent()
    os.closerange(3, there)
    os.closerange(there + 1, os.sysconf("SC_OPEN_MAX"))
    status = 1
    try:
        with open(there, "wb") as telling:
            pickle.dump(_said(work), telling, protocol=5)
        status = 0
    except BrokenPipeError:  # whoever wanted to know is gone
        pass
    finally:
        os._exit(status)


def _said(work: Callable[[], object]) -> tuple[str, object]:
    """How it was raised, or nothing, and the answer."""
    try:
        return "", work()
    except Exception:  # noqa: BLE001 (whatever it is, the other process is told of it)
        return traceback.format_exc(), None
