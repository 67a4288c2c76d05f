"""`kvproof init`: write an adapter that is to be filled in."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from kvproof.atomic import write_whole
from kvproof.cli.flags import Parser
from kvproof.cli.planned import report
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict

SKELETON = "adapter_skeleton.py"
"""The file of this package that is written: so it is checked with the rest of it."""

CLASS = "MyEngine"
DEFAULT = "adapter.py"


def run(arguments: Sequence[str]) -> int:
    parser = Parser("init", "Write a commented adapter for an engine of yours, to be filled in.")
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=DEFAULT, help=f"where (default {DEFAULT}); it must not exist yet"
    )
    parsed = parser.read(arguments)
    path = Path(parsed.file)
    target = f"{path}:{CLASS}"
    _write(path, (resources.files("kvproof") / SKELETON).read_text(encoding="utf-8").replace("FILE:", f"{path}:"))
    said = f"Wrote {path}. Fill in what is marked @abstractmethod; what is left says\n  kvproof check --target {target}"
    report(said, (), [Result("init", target, None, "", None, Verdict.SKIPPED, 0.0, detail="written")], parsed)
    return 0


def _write(path: Path, text: str) -> None:
    """Write a file that is not there. Raises BadUsage."""
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise BadUsage(f"init: {str(path)!r:.200} is no name of a Python file; write one such as {DEFAULT}")
    try:
        if path.exists() or path.is_symlink():
            raise BadUsage(f"init: {str(path)!r:.200} is there already and is not overwritten; name another file")
        write_whole(path, text)
    except OSError as error:
        raise BadUsage(f"init: {str(path)!r:.200} cannot be written ({error.strerror})") from None
