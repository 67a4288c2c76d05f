"""Writes the traces of the seeds' cases: `python -m tests.traces.write`, from the root of the repository.

One file for each case of `tests/seeds/` and discipline. They are committed, and read again by every later version:
`kvproof replay tests/traces/reset_pending_loads-pinning.trace.itf.json`.
"""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.seeds.driving import CASES, Case

from kvproof.scopes import describe_scope
from kvproof.trace import itf
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

HERE = Path(__file__).parent
SEEDS = HERE.parent / "seeds"
SUFFIX = ".trace.itf.json"


def trace_of(case: Case) -> Trace:
    return Trace(
        contract=case.contract,
        scope=case.scope,
        scope_name=describe_scope(case.scope),
        target="kvoffload",
        commands=case.commands,
        verdict=Verdict.PASSED,
        note=case.about,
    )


def all_traces() -> Iterator[tuple[Path, Trace]]:
    """Every case's file and trace, in order of name."""
    for module in pkgutil.iter_modules([str(SEEDS)]):
        import_module(f"tests.seeds.{module.name}")
    for name in sorted(CASES):
        yield HERE / f"{name}{SUFFIX}", trace_of(CASES[name])


if __name__ == "__main__":
    for path, trace in all_traces():
        itf.write(path, trace)
        print(path.relative_to(Path.cwd()))
