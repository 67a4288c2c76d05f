"""What recorders of live engines have in common: in a step things are only noted; their lines are made later."""

import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from typing import Any

from kvproof.log.entry import JSON
from kvproof.log.writing import STOPPED, LogFile

PAUSE_S = 0.1
"""So long noted things wait at most for their lines to be made, where a thread makes them (seconds)."""

TURN_S = 0.001
"""So long that thread keeps others of Python waiting at most, but for writing to the file (seconds)."""

BATCH = 256
"""So many things are noted before their lines are made (count), where no thread does it."""

MOST_NOTED = 65_536
"""Things that may be noted for that thread (count). Whoever notes one more makes the lines itself."""


class Noting(ABC):
    """Writes one log. `close` it.

    stopped  why no more is recorded, though nobody closed it: the disk is full, or of something that was noted no line
             can be made; None: all is well
    """

    def __init__(self, log: LogFile) -> None:
        self.stopped: str | None = None
        self._log = log
        self._most_noted = BATCH
        self._noted: deque[Any] = deque()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _lines(self, noted: Any) -> list[JSON]:
        """The lines of one thing that was noted: in the order of noting, each once."""

    def note(self, thing: Any) -> None:
        self._noted.append(thing)
        if len(self._noted) >= self._most_noted:
            self.flush()

    def write_beside(self) -> None:
        """Lines are made and written by a thread of the recorder's own, until it is closed."""
        self._most_noted = MOST_NOTED
        self._thread = threading.Thread(target=self._write_on, name="kvproof recorder", daemon=True)
        self._thread.start()

    def _write_on(self) -> None:
        while self.stopped is None and not self._closing.wait(PAUSE_S):
            self.flush(yielding=True)

    def flush(self, yielding: bool = False) -> None:
        """Write what is noted, once no more is recorded drop it. yielding: let other threads of Python go first, every
        millisecond."""
        with self._writing:
            if self.stopped is not None:
                self._noted.clear()
                return
            try:
                self._log.write(self._made(yielding))
            except OSError as error:
                self.give_up(str(error))
            except Exception as error:  # noqa: BLE001 (whatever it is: a log with a hole would say what did not happen)
                self.give_up(f"no line can be made of what was noted ({type(error).__name__}: {error})")

    def _made(self, yielding: bool) -> list[JSON]:
        """The lines of what is noted by now. Others go on noting meanwhile."""
        lines: list[JSON] = []
        since = time.monotonic()
        for _ in range(len(self._noted)):
            lines += self._lines(self._noted.popleft())
            if yielding and time.monotonic() - since > TURN_S:
                time.sleep(0)
                since = time.monotonic()
        return lines

    def close(self) -> None:
        """Write what is noted, and the log's end. Idempotent."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()
        try:
            self._log.close()
        except OSError as error:
            self.give_up(str(error))

    def give_up(self, why: str) -> None:
        """An engine must not fail because it cannot be recorded. If it still can, the log says that it stops here."""
        self.stopped = why
        with suppress(OSError):
            self._log.close(STOPPED)
        warnings.warn(f"{self._log.path} is not recorded any more: {why}", RuntimeWarning, stacklevel=3)
