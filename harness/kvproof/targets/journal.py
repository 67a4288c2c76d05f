"""The journal: what is about to be done to a target, written ahead into memory that outlives the process doing it.

A target may end its process, or never come back from a call. Whoever started that process then reads here which
commands led there. Without a journal (`keep` was not called) nothing is written, and nothing is lost but that.
"""

import mmap
import pickle
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kvmodel.setting import Setting
from kvproof.targets.command import Command

BYTES = 4 * 1024 * 1024
"""What a journal holds: at least 60,000 commands of one run. It begins anew with each target that is opened."""

SLACK_S = 1.0
"""So much later than a call is interrupted from inside, its process is ended from outside."""

_HEAD = struct.Struct("=QQQdd")
"""Bytes of records, calls, whether something did not fit, how long the call may take, and when it is overdue."""

_SIZE = struct.Struct("=I")


class Begun(NamedTuple):
    """What was done to the target that was opened last.

    commands  given to it, the last one perhaps not to its end
    calls     of `perform` (count): more than there are commands where one of them stands for many
    """

    setting: Setting
    commands: tuple[Command, ...]
    calls: int


class Journal:
    """One journal, shared with every process that is forked after it was made."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, BYTES)
        self._used = self._calls = 0
        self._full = False
        self._muted = False

    def begin(self, setting: Setting) -> None:
        """A target is opened. What was written of another is forgotten."""
        self._used = self._calls = 0
        self._full = False
        self._state()
        self._add(setting)

    def ahead(self, command: Command) -> None:
        """A command is about to be given to the target."""
        self._calls += 1
        if self._muted:
            self._state()
        else:
            self._add(tuple(command))

    @contextmanager
    def as_one(self, command: Command) -> Iterator[None]:
        """All commands given inside are this one."""
        self._add(tuple(command))
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    def calling(self, patience_s: float) -> None:
        """A call begins that is interrupted after so many seconds; 0: it has come back."""
        due = time.monotonic() + patience_s + min(SLACK_S, max(patience_s, SLACK_S / 4)) if patience_s else 0.0
        _HEAD.pack_into(self._memory, 0, self._used, self._calls, self._full, patience_s, due)

    @property
    def overdue_s(self) -> float:
        """How long the call might have taken that should have come back by now; 0: there is none."""
        patience_s, due = _HEAD.unpack_from(self._memory)[3:]
        return patience_s if 0.0 < due < time.monotonic() else 0.0

    def read(self) -> Begun | None:
        """What was done to the last target. None if none was opened, or if it was more than fits."""
        used, calls, full, _, _ = _HEAD.unpack_from(self._memory)
        if full or not used:
            return None
        records: list[object] = []
        position, end = _HEAD.size, _HEAD.size + used
        while position < end:
            (size,) = _SIZE.unpack_from(self._memory, position)
            position += _SIZE.size
            records.append(pickle.loads(self._memory[position : position + size]))
            position += size
        setting, *commands = records
        assert isinstance(setting, Setting)
        return Begun(setting, tuple(Command(*command) for command in commands), calls)  # type: ignore[misc]

    def _add(self, record: object) -> None:
        data = pickle.dumps(record)
        start = _HEAD.size + self._used
        if start + _SIZE.size + len(data) > BYTES:
            self._full = True
        else:
            _SIZE.pack_into(self._memory, start, len(data))
            self._memory[start + _SIZE.size : start + _SIZE.size + len(data)] = data
            self._used += _SIZE.size + len(data)
        self._state()

    def _state(self) -> None:
        _HEAD.pack_into(self._memory, 0, self._used, self._calls, self._full, 0.0, 0.0)


_kept: Journal | None = None


def keep(journal: Journal) -> None:
    """From now on write everything that this process does to targets into this journal."""
    global _kept
    _kept = journal


def is_kept() -> bool:
    """Whether somebody reads what is written."""
    return _kept is not None


def begun(setting: Setting) -> None:
    """A target is opened."""
    if _kept is not None:
        _kept.begin(setting)


def ahead(command: Command) -> None:
    """A command is about to be given to a target."""
    if _kept is not None:
        _kept.ahead(command)


def put_back(setting: Setting, commands: Callable[[], Sequence[Command]]) -> None:
    """A target is put back to where these commands lead."""
    if _kept is not None:
        _kept.begin(setting)
        for command in commands():
            _kept.ahead(command)


@contextmanager
def as_one(command: Command) -> Iterator[None]:
    """What is done inside is all of it this one command."""
    if _kept is None:
        yield
        return
    with _kept.as_one(command):
        yield


def calling(patience_s: float) -> None:
    """A call begins that is interrupted after so many seconds; 0: it has come back."""
    if _kept is not None:
        _kept.calling(patience_s)
