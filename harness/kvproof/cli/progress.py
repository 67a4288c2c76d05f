"""Progress on standard error: one line a second, rewritten in place on a terminal, plain elsewhere."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from kvproof.runner import Status

INTERVAL_S = 1.0
FALLBACK_COLUMNS = 80


class ProgressLine:
    """Shows a status once a second."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.due = INTERVAL_S
        self.drawn = False

    def show(self, status: Status) -> None:
        running = "; ".join(f"{job}{f': {words}' if words else ''}" for job, words in status.running)
        self.say(status.seconds, f"{status.done}/{status.total} done; {running or 'finishing'}")

    def say(self, seconds: float, words: str) -> None:
        """Show these words, if a second has passed since others were."""
        if seconds < self.due:
            return
        self.due = seconds + INTERVAL_S
        text = "".join(c if c.isprintable() else " " for c in f"{seconds:3.0f} s  {words}")
        if self.terminal:
            self.stream.write(f"\r\x1b[K{text[: self._columns() - 1]}")
            self.drawn = True
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self.drawn = False

    def _columns(self) -> int:
        """Of the terminal that the line is on, which need not be the one that standard output is on."""
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or FALLBACK_COLUMNS
        except (OSError, ValueError):
            return FALLBACK_COLUMNS


@contextmanager
def waiting_for(words: str) -> Iterator[None]:
    """Show that what is done inside, in this process and without any progress of its own, goes on."""
    line, started, done = ProgressLine(), time.monotonic(), threading.Event()

    def tell() -> None:
        while not done.wait(INTERVAL_S):
            line.say(time.monotonic() - started, words)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        line.clear()
