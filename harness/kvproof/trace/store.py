"""The failures that are kept: a folder for each under `.kvproof/failures`, named by its fingerprint.

    .kvproof/failures/7c1f9e/trace.itf.json     the trace, for replay, show and shrink
    .kvproof/failures/7c1f9e/report.txt         what the report said
    .kvproof/failures/7c1f9e/verdict.json       the same for machines
    .kvproof/failures/7c1f9e/test_repro.py      a pytest that fails as it did
    .kvproof/failures/7c1f9e/test_alone.py      one that needs no kvproof, of a target that says how
    .kvproof/failures/7c1f9e/timeline.html      the trace told step by step

Names come from the command line and are looked up by pattern: nothing outside of the folder is ever read or written
through an id.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvproof.atomic import write_whole
from kvproof.trace import itf
from kvproof.trace.trace import BadTrace, Trace

TRACE_FILE = "trace.itf.json"
REPORT_FILE = "report.txt"
VERDICT_FILE = "verdict.json"
REPRO_FILE = "test_repro.py"
ALONE_FILE = "test_alone.py"
TIMELINE_FILE = "timeline.html"
FILES = (TRACE_FILE, REPORT_FILE, VERDICT_FILE, REPRO_FILE, ALONE_FILE, TIMELINE_FILE)
"""All that a folder of ours holds."""

_ID = re.compile(r"[0-9a-f]{1,64}")


def default_root(folder: Path | None = None) -> Path:
    """Where failures are kept: below `folder`, or below the current one."""
    return (folder or Path.cwd()) / ".kvproof" / "failures"


def save(root: Path, identifier: str, trace: Trace, report: str, beside: Mapping[str, str] | None = None) -> Path:
    """Keep a failure, in place of an older one with the same id, and return the trace's path.

    `beside` has the text of further files of FILES; those that it lacks are removed, since they tell of an older trace.
    Raises OSError when the folder cannot be written, and ValueError for an id that is none.
    """
    if not _ID.fullmatch(identifier):
        raise ValueError(f"{identifier!r} is no id of a failure")
    folder = root / identifier
    folder.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink():
        raise OSError(f"{folder} is a symbolic link; a failure is not written through it")
    path = folder / TRACE_FILE
    itf.write(path, trace)
    texts = {REPORT_FILE: report, **(beside or {})}
    for name in FILES[1:]:
        if name in texts:
            write_whole(folder / name, texts[name])
        else:
            (folder / name).unlink(missing_ok=True)
    return path


def prune(path: Path) -> bool:
    """Remove the failure that a trace file of ours belongs to, and say whether it was one.

    Only files of our names are removed, and the folder if nothing else is in it. Raises OSError.
    """
    folder = path.parent
    if path.name != TRACE_FILE or not _ID.fullmatch(folder.name) or folder.is_symlink():
        return False
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
    return True


def ids(root: Path) -> tuple[str, ...]:
    """The ids of all failures that are kept, in alphabetical order."""
    if not root.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in root.iterdir() if _ID.fullmatch(entry.name) and not entry.is_symlink()))


def resolve(name: str, root: Path) -> Path:
    """The trace file that a name stands for: an id or the beginning of one, a file, or a folder with a trace in it.

    Raises BadTrace when there is none, or when several ids begin so.
    """
    found: Sequence[str] = []
    if _ID.fullmatch(name):
        found = [identifier for identifier in ids(root) if identifier.startswith(name)]
    if len(found) > 1 and name not in found:
        raise BadTrace(f"id {name} is the beginning of {len(found)} failures ({', '.join(found)}); write more of it")
    if found:
        return root / (name if name in found else found[0]) / TRACE_FILE
    path = Path(name)
    try:
        if path.is_dir():
            path = path / TRACE_FILE
        if path.exists():
            return path
    except (OSError, ValueError):  # such as a name that is too long, or holds a zero byte
        pass
    raise BadTrace(f"trace {name!r:.200} does not exist; name a file, or one of the ids below {root}")


def shown(path: Path) -> str:
    """A path as people type it: relative to the current folder where it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
