"""Files from other people, read with a bound, and JSON in them."""

import json
import os
import re
import stat
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, NoReturn

MAX_DEPTH = 32
"""The deepest nesting of JSON that is read; a trace of ours has 5, a log 7."""

# Possessive, and content with an end or without: linear in the size of any file.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class Unfit(Exception):
    """A file that is not read. The text says why, to go on after the file's name: `has 9 bytes, and ...`."""


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes. Never waits, as for the other end of a pipe. Raises
    Unfit."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unfit(f"cannot be opened ({reason})") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise Unfit("is not a regular file")
    with os.fdopen(handle, "rb") as file:
        if about.st_size > most:
            raise Unfit(f"has {about.st_size:,} bytes, and at most {most:,} are read")
        try:
            return file.read(most)
        except OSError as error:
            raise Unfit(f"cannot be read ({error.strerror})") from None


class Nesting(NamedTuple):
    """How deep a JSON text is nested, and how many lists and records it has."""

    depth: int
    containers: int


def nesting(content: bytes) -> Nesting:
    """Found without parsing it, and whether or not it is JSON."""
    brackets = _STRING.sub(b"", content).translate(None, _NOT_BRACKETS)
    depth = max(accumulate(_STEP[byte] for byte in brackets), default=0)
    return Nesting(depth, brackets.count(b"[") + brackets.count(b"{"))


def parsed(text: str) -> object:
    """What a JSON text stands for. Raises ValueError, for a record too that has a key twice, and for NaN."""
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_record_of_distinct)


def _record_of_distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"a record has {twice!r:.40} twice")
    return record


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
