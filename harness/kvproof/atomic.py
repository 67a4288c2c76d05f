"""Files that are there as a whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader, or a crash, sees the old content or the new one, never a part.

    Raises OSError when the folder does not exist or is not writable; then nothing is left behind.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp makes it private; reports are for others to read
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
