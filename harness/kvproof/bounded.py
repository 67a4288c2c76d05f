"""Files from other people, read with a bound."""

import os
import stat
from pathlib import Path


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
