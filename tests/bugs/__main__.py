"""Hunts every bug and every lie of the bank, prints what caught each, and writes build/bugs.json.

Fails if one is not caught as its record says, by that property, or if no bug breaks some property.

python -m tests.bugs                  all of them
python -m tests.bugs ID ...           some
python -m tests.bugs --record ID ...  also store the trace that was found; for a new bug, before its record is whole
python -m tests.bugs --plant ID       only write kvoffload with this bug to build/bugs/ID, to try it by hand
python -m tests.bugs --readme ID ...  also write what was found into the table of README.md
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

from kvproof.trace import itf
from kvspecs.catalogue import NAMES
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.bug import Bug, variant_of
from tests.bugs.hunt import Caught, hunt, searched
from tests.bugs.lies import LIES, Lie
from tests.bugs.planting import ROOT, plant
from tests.bugs.reports import REPORTS
from tests.bugs.traces import trace_file, trace_of

BUILD = ROOT / "build"
README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- table: written by python -m tests.bugs --readme -->", "<!-- end of table -->"
CORES = 2


class Row(NamedTuple):
    """One bug or lie, and what was found. killed: as its record says, property and number of commands alike."""

    id: str
    kind: str
    engine: str
    source: str
    where: str
    killed: bool
    caught: Caught

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "kind": self.kind,
            "property": self.caught.property,
            "engine": self.engine,
            "killed": self.killed,
            "commands": len(self.caught.commands),
            "states": self.caught.states,
            "seconds": round(self.caught.seconds, 3),
        }


def row_of_bug(bug: Bug, caught: Caught) -> Row:
    killed = (caught.property, len(caught.commands)) == (bug.property, bug.commands)
    return Row(bug.id, bug.kind, bug.engine, bug.source, f"{bug.discipline} {bug.variant}", killed, caught)


def row_of_lie(lie: Lie) -> Row:
    caught = searched(variant_of(lie.variant, lie.discipline), lie.target)
    killed = (caught.property, len(caught.commands)) == (lie.property, lie.commands)
    return Row(lie.id, "adapter", "conform ledger", "planted", f"{lie.discipline} {lie.variant}", killed, caught)


def rows(bugs: Sequence[Bug], lies: Sequence[Lie]) -> Iterator[Row]:
    """What was found, in the order of the bank; two hunts at a time."""
    with ThreadPoolExecutor(CORES) as pool:
        for bug, hunted in zip(bugs, pool.map(lambda bug: hunt(bug, bug.engine, bug.variant, None), bugs), strict=True):
            yield row_of_bug(bug, hunted.caught)
    for lie in lies:
        yield row_of_lie(lie)


def line(row: Row) -> str:
    """One line of the printed table."""
    caught = row.caught
    outcome = caught.property or "NOT CAUGHT"
    if not row.killed:
        outcome += " (not as recorded)"
    numbers = f"{len(caught.commands):>3} commands {caught.states:>6} pairs {caught.seconds:>6.2f} s"
    return f"{row.id:31} {row.engine:14} {row.where:56} {numbers}  {outcome}"


def progress(done: int, total: int) -> None:
    """Say on a terminal how far the hunt is, on the line that the next row overwrites."""
    if sys.stderr.isatty():
        print(f"{done} of {total}", end="\r", file=sys.stderr, flush=True)


def unbroken(found: Sequence[Row]) -> list[str]:
    """Properties that no bug of kvoffload breaks, so that nothing shows that they can fail. Lies do not count."""
    broken = {row.caught.property for row in found if row.id in BY_ID}
    return [name for name in NAMES if name not in broken]


def by_kind(found: Sequence[Row]) -> Iterator[str]:
    """One line for each kind of code: how many of its bugs were caught, and how fast in the middle."""
    for kind in dict.fromkeys(row.kind for row in found):
        rows = [row for row in found if row.kind == kind]
        middle = median([row.caught.seconds for row in rows])
        yield f"{kind:12} {sum(row.killed for row in rows):>3} of {len(rows):>3} caught, median {middle:.2f} s"


def markdown(found: Sequence[Row], before: str) -> str:
    """The table of README.md, in the order of the bank: what was not hunted now keeps the line that it had `before`."""
    lines = {line.split(" ")[1]: line for line in before.splitlines() if line.startswith("| ")}
    for row in found:
        lines[row.id] = (
            f"| {row.id} | {row.kind} | {short(row.source)} | {row.engine} | {row.where} | {row.caught.property} "
            f"| {len(row.caught.commands) or '-'} | {row.caught.states or '-'} | {row.caught.seconds:.2f} |"
        )
    head = ["| id | in | source | caught by | where | property | commands | pairs | seconds |"]
    head.append("|---|---|---|---|---|---|---|---|---|")
    names = [*(bug.id for bug in BANK), *(lie.id for lie in LIES)]
    return "\n".join([*head, *[lines[name] for name in names if name in lines]])


def short(source: str) -> str:
    """A link under the name of the engine and the kind and number of the report, with its date."""
    if source == "planted":
        return source
    report = REPORTS[source]
    *_, kind, number = source.split("/")
    return f"[{report.engine} {'PR' if kind == 'pull' else 'issue'} {number}]({source}), {report.date}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bugs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--record", action="store_true", help="store the traces that are found")
    parser.add_argument("--plant", action="store_true", help="write kvoffload with the bug to build/bugs/ID, and end")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    asked = parser.parse_args(arguments)
    bugs = [bug for bug in BANK if not asked.ids or bug.id in asked.ids]
    lies = [lie for lie in LIES if not asked.ids or lie.id in asked.ids]
    unknown = set(asked.ids) - BY_ID.keys() - {lie.id for lie in LIES}
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank")
    if asked.plant:
        return planted(bugs)
    found: list[Row] = []
    for row in rows(bugs, lies):
        found.append(row)
        print(line(row), flush=True)
        progress(len(found), len(bugs) + len(lies))
        bug = BY_ID.get(row.id)
        path = trace_file(bug) if bug is not None else None
        if asked.record and bug is not None and path is not None and row.caught.property:
            path.parent.mkdir(parents=True, exist_ok=True)
            itf.write(path, trace_of(bug, row.caught.commands))
    killed = sum(row.killed for row in found)
    print(f"{killed} of {len(found)} caught as recorded")
    never = [] if asked.ids else unbroken(found)
    for name in never:
        print(f"no bug breaks {name}")
    if not asked.ids:
        print(*by_kind(found), sep="\n")
        BUILD.mkdir(exist_ok=True)
        (BUILD / "bugs.json").write_text(json.dumps([row.as_json() for row in found], indent=2) + "\n")
    if asked.readme:
        before, _, rest = README.read_text().partition(BEGIN)
        table, _, after = rest.partition(END)
        README.write_text(f"{before}{BEGIN}\n\n{markdown(found, table)}\n\n{END}{after}")
    return 0 if killed == len(found) and not never else 1


def planted(bugs: Sequence[Bug]) -> int:
    for bug in bugs:
        folder = BUILD / "bugs" / bug.id
        shutil.rmtree(folder, ignore_errors=True)
        plant(bug, folder)
        print(f"PYTHONPATH={folder} kvproof check --discipline {bug.discipline}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
