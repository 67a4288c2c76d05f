"""Progress on standard error: one line a second, rewritten in place on a terminal, plain elsewhere."""

import shutil
import sys
from typing import TextIO

from kvproof.runner import Status

INTERVAL_S = 1.0


class ProgressLine:
    """Shows a status once a second."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.due = INTERVAL_S
        self.drawn = False

    def show(self, status: Status) -> None:
        if status.seconds < self.due:
            return
        self.due = status.seconds + INTERVAL_S
        running = "; ".join(f"{job}{f': {words}' if words else ''}" for job, words in status.running)
        text = f"{status.seconds:3.0f} s  {status.done}/{status.total} done; {running or 'finishing'}"
        text = "".join(c if c.isprintable() else " " for c in text)
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(f"\r\x1b[K{text[:width]}")
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
