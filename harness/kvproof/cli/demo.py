"""`kvproof demo`: write a small engine with a bug, and say what to type next."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from kvproof.atomic import write_whole
from kvproof.cli.flags import Parser
from kvproof.cli.planned import report
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict

FOLDER = "kvproof-demo"
ENGINE = "engine.py"
TARGET = f"{ENGINE}:Demo"
SETTINGS = f'[tool.kvproof]\ntarget = "{TARGET}"\n'


def run(arguments: Sequence[str]) -> int:
    parser = Parser("demo", "Write an engine with one planted bug into a new folder, for the tutorial.")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=FOLDER, help=f"new or empty (default {FOLDER})")
    parsed = parser.read(arguments)
    folder = Path(parsed.folder)
    files = {ENGINE: (resources.files("kvproof") / "demo" / ENGINE).read_text(encoding="utf-8")}
    _write(folder, {**files, "pyproject.toml": SETTINGS})
    said = [
        f"Wrote {folder / ENGINE}: an engine with one wrong line, and its adapter. Type next:",
        *([] if folder == Path() else [f"  cd {folder}"]),
        "  kvproof check",
    ]
    report(
        "\n".join(said), (), [Result("demo", TARGET, None, "", None, Verdict.SKIPPED, 0.0, detail="written")], parsed
    )
    return 0


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write files into a folder that is new or empty. Raises BadUsage."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadUsage(f"demo: {str(folder)!r:.200} is there already and is no empty folder; name another one")
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            write_whole(folder / name, text)
    except OSError as error:
        raise BadUsage(f"demo: {str(folder)!r:.200} cannot be written ({error.strerror})") from None
