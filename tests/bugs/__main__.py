"""Hunts every bug of the bank with the exhaustive engines, prints what caught each, and writes build/bugs.json.

Fails if one is not caught as its record says or takes too much, or if no bug of kvoffload breaks some property.

python -m tests.bugs                  all of them
python -m tests.bugs ID ...           some
python -m tests.bugs --record ID ...  also store the trace that was found; for a new bug, before its record is whole
python -m tests.bugs --plant ID       only write kvoffload with this bug to build/bugs/ID, to try it by hand
python -m tests.bugs --keep ID ...    also keep what was found in kills.json, and write docs/kill-matrix.md
python -m tests.bugs --page           only write docs/kill-matrix.md from what is kept
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

from kvproof.trace import itf
from tests.bugs import kept, rules
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.bug import Bug
from tests.bugs.hunt import hunt
from tests.bugs.interpreter import let_go
from tests.bugs.lies import LIES
from tests.bugs.matrix import (
    CORES,
    MOST_SECONDS_IN_ALL,
    Kill,
    by_kind,
    lost,
    of_bugs,
    of_lies,
    of_rules,
    unbroken,
)
from tests.bugs.planting import ROOT, DoesNotApply, mutated, plant
from tests.bugs.traces import trace_file, trace_of

BUILD = ROOT / "build"


def line(kill: Kill) -> str:
    """One line of the printed table."""
    outcome = kill.property or "NOT CAUGHT"
    numbers = f"{kill.commands:>3} commands {kill.states:>6} states {kill.seconds:>6.2f} s"
    return f"{kill.id:31} {kill.engine:14} {kill.where:56} {numbers}  {outcome}{'' if kill.killed else ' (LOST)'}"


def progress(done: int, total: int) -> None:
    """Say on a terminal how far the hunt is, on the line that the next row overwrites."""
    if sys.stderr.isatty():
        print(f"{done} of {total}", end="\r", file=sys.stderr, flush=True)


def processor_seconds() -> float:
    """Of this process and of all that it has started and waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bugs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--record", action="store_true", help="store the traces that are found")
    parser.add_argument("--plant", action="store_true", help="write kvoffload with the bug to build/bugs/ID, and end")
    parser.add_argument("--keep", action="store_true", help="keep what is found, and write docs/kill-matrix.md")
    parser.add_argument("--page", action="store_true", help="only write docs/kill-matrix.md from what is kept")
    asked = parser.parse_args(arguments)
    unknown = set(asked.ids) - BY_ID.keys() - {lie.id for lie in LIES} - rules.BY_NAME.keys()
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank")
    if asked.page:
        kept.write_page()
        return 0
    bugs = [bug for bug in BANK if not asked.ids or bug.id in asked.ids]
    try:
        for bug in bugs:
            mutated(bug)
    except DoesNotApply as error:
        print(error, file=sys.stderr)
        return 1
    if asked.plant:
        return planted(bugs)
    if asked.record:
        record(bugs)
    kills = list(shown(asked.ids, bugs))
    wrong = [*lost(kills), *(whole(kills) if not asked.ids else ())]
    if asked.keep:
        kept.keep(kills)
    print(f"{sum(kill.killed for kill in kills)} of {len(kills)} caught as recorded")
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


def shown(ids: Sequence[str], bugs: Sequence[Bug]) -> Iterator[Kill]:
    """Hunt, and print each as it is found."""
    lies = [lie for lie in LIES if not ids or lie.id in ids]
    of_protocol = [name for name in rules.BY_NAME if not ids or name in ids]
    total = len(bugs) + len(lies) + len(of_protocol)
    for done, kill in enumerate(chain(of_bugs(bugs), of_lies(lies), of_rules(of_protocol)), start=1):
        print(line(kill), flush=True)
        progress(done, total)
        yield kill


def whole(kills: Sequence[Kill]) -> Iterator[str]:
    """Of all of them: write build/bugs.json, print the kinds, and say what is wrong with the bank as a whole."""
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bugs.json").write_text(json.dumps([kill.as_json() for kill in kills], indent=2) + "\n")
    for kind, killed, of, middle in by_kind(kills):
        print(f"{kind:12} {killed:>3} of {of:>3} caught, median {middle:.2f} s")
    for name in unbroken(kills):
        yield f"no bug of kvoffload breaks {name}: nothing shows that it can fail"
    let_go()
    seconds = processor_seconds() / CORES
    print(f"{seconds:.0f} s of processor time on each of {CORES} cores")
    if seconds > MOST_SECONDS_IN_ALL:
        yield f"all together take {seconds:.0f} s of each of {CORES} cores; {MOST_SECONDS_IN_ALL:.0f} are allowed"


def record(bugs: Sequence[Bug]) -> None:
    for bug in bugs:
        caught = hunt(bug, bug.engine, bug.variant)
        if caught.property:
            path = trace_file(bug)
            path.parent.mkdir(parents=True, exist_ok=True)
            itf.write(path, trace_of(bug, caught.commands))


def planted(bugs: Sequence[Bug]) -> int:
    for bug in bugs:
        folder = BUILD / "bugs" / bug.id
        shutil.rmtree(folder, ignore_errors=True)
        plant(bug, folder)
        print(f"PYTHONPATH={folder} kvproof check --discipline {bug.discipline}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
