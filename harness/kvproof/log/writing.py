"""A log being written: its header, its lines, and its end. What recorders of live engines have in common."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from kvmodel.contract import Contract
from kvproof.log.entry import JSON, SCHEMA
from kvproof.log.lines import MAX_LINE, MAX_LINES

encoded = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
"""A line as text. Recorders make their records anew for each line: no record is in itself."""

CLOSED, FULL, STOPPED = "closed", "full", "stopped"
"""Why a log ends: whoever recorded is done; it has as many lines as are read; the recorder could not go on."""


def header(engine: str, contract: Contract, sizes: JSON) -> JSON:
    """The first line. engine: what reports call it."""
    modes = {
        name: value
        for name, value in contract._asdict().items()
        if name != "environment" and value != Contract._field_defaults.get(name)
    }
    return {"kvproof_log": SCHEMA, "engine": engine, "contract": modes, "sizes": sizes}


class LogFile:
    """A log in a new file.

    ended  no more lines are written: it was closed, is full, or cannot be written
    """

    def __init__(self, path: Path, first: JSON, most_lines: int = MAX_LINES) -> None:
        """Writes the header. Raises OSError, and FileExistsError if the file is there: no log is written over."""
        self.ended = False
        self.path = path
        self._left = most_lines - 2  # the header, and the end
        self._file: IO[str] = path.open("x", encoding="utf-8")
        self._file.write(json.dumps(first) + "\n")
        self._file.flush()

    def write(self, lines: list[JSON]) -> None:
        """So many more lines, and whoever follows the file sees them. What was seen is left out of a line that is too
        long with it. Raises OSError, and then the log has ended."""
        if self.ended:
            return
        texts = [_text(line) for line in lines[: self._left]]
        self._left -= len(texts)
        try:
            self._file.write("".join(texts))
            self._file.flush()
        except OSError:
            self.ended = True
            with suppress(OSError):  # it says again that it cannot be written, and is closed
                self._file.close()
            raise
        if len(texts) < len(lines):
            self._end(FULL)

    def close(self, why: str = CLOSED) -> None:
        """Say that this is the end, and have it all on the disk. Idempotent. Raises OSError."""
        if not self.ended:
            self._end(why)

    def _end(self, why: str) -> None:
        self.ended = True
        with self._file as file:
            file.write(json.dumps({"end": why}) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _text(line: JSON) -> str:
    text = encoded(line)
    if len(text) < MAX_LINE:
        return text + "\n"
    return encoded({name: value for name, value in line.items() if name != "seen"}) + "\n"
