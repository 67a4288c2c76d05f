"""Plants a bug: a copy of kvoffload with one place of its source replaced. The working tree is never touched."""

import shutil
from pathlib import Path

from tests.bugs.bug import Bug

ROOT = Path(__file__).parents[2]
SOUND = ROOT / "impl" / "kvoffload"


class DoesNotApply(Exception):
    """The text that a bug replaces is not in the source exactly once: the bug must be written anew."""


def mutated(bug: Bug) -> str:
    """The source of the bug's file with the bug in it. Raises DoesNotApply."""
    source = (SOUND / bug.file).read_text()
    found = source.count(bug.old)
    if found != 1:
        raise DoesNotApply(f"bug {bug.id}: its old text is in {bug.file} {found} times; it must be there once")
    return source.replace(bug.old, bug.new)


def plant(bug: Bug, folder: Path) -> Path:
    """Write `folder`/kvoffload, with the bug in it, and return `folder`: it belongs in front of PYTHONPATH.

    Compiled files come along, and stay valid for every module but the changed one. Raises DoesNotApply.
    """
    source = mutated(bug)
    package = folder / "kvoffload"
    shutil.copytree(SOUND, package)
    changed = package / bug.file
    for compiled in (changed.parent / "__pycache__").glob(f"{changed.stem}.*.pyc"):
        compiled.unlink()
    changed.write_text(source)
    return folder
