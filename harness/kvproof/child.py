"""A call in a forked process: whatever it does to that process, the caller hears what became of it."""

import ctypes
import faulthandler
import os
import re
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import NoReturn, TypeVar, cast

from kvproof.targets import journal as journals
from kvproof.targets.journal import Journal
from kvproof.targets.outcome import Crashed

T = TypeVar("T")

TICK_S = 0.05
"""How soon it is noticed that a call is overdue."""

LAST_WORDS_S = 0.5
"""How long a process that is ended may take to say where it is."""

LAST_WORDS_BYTES = 4096
"""How much of what it says is read."""

_WHERE = re.compile(r'File "([^"]*)", line (\d+) in (\S+)\n')
_PR_SET_PDEATHSIG = 1


def in_child(
    call: Callable[[Callable[[str], None]], T], journal: Journal, progress: Callable[[str], None]
) -> T | Crashed:
    """What `call` returns, which gets a function that says how far it is. Raises what it raises.

    Crashed if its process ends before, or is ended since a call into a target, by the journal, does not come back.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    here, there = Pipe(duplex=False)
    words, last_words = Pipe(duplex=False)
    with here, words:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, where the caller has threads
            process = os.fork()
        if process == 0:
            here.close()
            words.close()
            _be_child(call, journal, there, last_words)
        there.close()
        last_words.close()
        child = _Child(process, here, journal, words)
        try:
            return cast("T | Crashed", child.heard(progress))
        finally:
            child.end()


def survived(call: Callable[[], T]) -> T | None:
    """What `call` returns; None if the target that it runs ends its process or never comes back. In a process where no
    target is expected to, no other one is made for it."""
    if not journals.is_kept():
        return call()
    result = in_child(lambda progress: call(), Journal(), lambda words: None)
    return None if isinstance(result, Crashed) else result


def end_with_parent() -> None:
    """From now on this process is killed when the one that forked it ends. On Linux alone; elsewhere it lives on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Child:
    def __init__(self, process: int, here: Connection, journal: Journal, words: Connection) -> None:
        self.process = process
        self.here = here
        self.journal = journal
        self.words = words
        self.said = b""
        self.status: int | None = None

    def heard(self, progress: Callable[[str], None]) -> object:
        while True:
            if self.here.poll(TICK_S):
                try:
                    kind, content = self.here.recv()
                except EOFError:
                    return self._death()
                if kind == "returned":
                    return content
                if kind == "raised":
                    raise content
                progress(content)
            elif patience_s := self.journal.overdue_s:
                place, function = self._asked_where()
                return Crashed("Hang", f"no answer within {patience_s:g} s{place}", function)
            elif self._has_ended() and not self.here.poll():  # a process of its own may hold the pipe open
                return self._death()

    def end(self) -> None:
        """End the process if it still runs, and what it has started in its group."""
        if not self._has_ended():
            with suppress(ProcessLookupError):  # it has not come to have a group yet
                os.killpg(self.process, signal.SIGKILL)
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)

    def _has_ended(self) -> bool:
        if self.status is None:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                self.status = status
        return self.status is not None

    def _death(self) -> Crashed:
        if self.status is None:
            self.status = os.waitpid(self.process, 0)[1]
        if os.WIFSIGNALED(self.status):
            place, function = self._where()
            name = signal.Signals(os.WTERMSIG(self.status)).name
            return Crashed(name, f"its process was killed{place}", function)
        return Crashed("Exit", f"its process ended with status {os.WEXITSTATUS(self.status)}")

    def _asked_where(self) -> tuple[str, str]:
        """Where the process is. It answers even while it is in a call that never returns to Python."""
        os.kill(self.process, signal.SIGUSR1)
        return self._where(LAST_WORDS_S)

    def _where(self, within_s: float = 0.0) -> tuple[str, str]:
        """The place in parentheses, and the function, of the innermost Python code that ran; empty if it is not said
        in time."""
        until = time.monotonic() + within_s
        while (found := _WHERE.search(self.said.decode("utf-8", "replace"))) is None:
            left = LAST_WORDS_BYTES - len(self.said)
            if not left or not wait([self.words], max(until - time.monotonic(), 0.0)):
                return "", ""
            heard = os.read(self.words.fileno(), left)
            if not heard:
                return "", ""
            self.said += heard
        file, line, function = found.groups()
        return f" ({Path(file).name}:{line})", function


def _be_child(
    call: Callable[[Callable[[str], None]], object], journal: Journal, there: Connection, words: Connection
) -> NoReturn:
    try:
        os.setsid()  # a target that ends its whole process group ends no more than itself
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        end_with_parent()
        os.set_blocking(words.fileno(), False)  # what does not fit is left unsaid
        faulthandler.enable(file=words.fileno(), all_threads=False)
        faulthandler.register(signal.SIGUSR1, file=words.fileno(), all_threads=False)
        journals.keep(journal)
        _answer(there, call)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


def _answer(there: Connection, call: Callable[[Callable[[str], None]], object]) -> None:
    try:
        there.send(("returned", call(lambda text: there.send(("progress", text)))))
    except Exception as error:  # noqa: BLE001 (the caller raises it)
        try:
            there.send(("raised", error))
        except Exception:  # noqa: BLE001 (it cannot be sent)
            there.send(("raised", RuntimeError(f"{type(error).__name__}: {error}")))
