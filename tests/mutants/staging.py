"""Stages a copy of the repository in which every mutant is there at once: mutmut wants one source root, ours are four.

Only the copy is mutated. Each run makes it anew.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path

from tests.mutants.judging import BUILD, ROOT
from tests.mutants.mutant import Mutant
from tests.mutants.mutmut_files import mutated

PACKAGES = ("model/kvmodel", "specs/kvspecs", "impl/kvoffload", "harness/kvproof")

SETTINGS = '[tool.mutmut]\nsource_paths = ["src"]\n\n[tool.pytest.ini_options]\n'


def stage(name: str, files: Sequence[str]) -> tuple[Path, list[Mutant]]:
    """Make the copy, as build/mutants/`name`, in which `files` are mutated: patterns of paths below the source root.

    FileNotFoundError if a pattern finds none.
    """
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / "src" / Path(package).name, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("*.pyc"))
    (folder / "pyproject.toml").write_text(SETTINGS)
    mutants: list[Mutant] = []
    with chdir(folder):  # where mutmut looks for its settings
        for path in _found(folder / "src", files):
            module = ".".join(path.relative_to(folder / "src").with_suffix("").parts)
            code, made = mutated(module, path.read_text())
            path.write_text(code)
            mutants += made
    return folder, mutants


def _found(source: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        paths = [path for path in sorted(source.glob(pattern)) if path.name != "__init__.py"]
        if not paths:
            raise FileNotFoundError(f"no module of ours is called {pattern}")
        yield from paths
