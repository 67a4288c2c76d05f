"""Which row of `kvproof check` catches each bug: its jobs one by one, until one is REFUTED.

    python -m tests.bugs.in_check [ID ...]     those named, or those that have no line yet, and keep what is found
    python -m tests.bugs.in_check --again      all of them anew
    python -m tests.bugs.in_check --mode MODE  those that show with this mode
    python -m tests.bugs.in_check --readme     only write the table of modes into README.md from what is kept

The jobs are those of the plan. One that has the variant of the bug's record comes first, and of its variants, which it
takes one after another, that one alone. If nothing is refuted there, all jobs are asked, as they are in the plan: what
samples last, those of the bug's discipline before others, cheap ones first.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from kvproof import plan
from kvproof.engines import conform
from kvproof.failure import Failure
from kvproof.job import Job
from kvproof.search.modes import MODES, Variant, switched_on
from kvproof.search.narrow import variants_of
from kvproof.verdict import Verdict
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.bug import Bug, variant_of
from tests.bugs.interpreter import answer_of, require_planted

LIMIT = 1800.0
"""Elapsed seconds after which a bug is given up; nothing is known of it then."""
CORES = 2
FOLDER = Path(__file__).parent
FILE = FOLDER / "in_check.json"
README = FOLDER / "README.md"
BEGIN, END = "<!-- modes: written by python -m tests.bugs.in_check --readme -->", "<!-- end of modes -->"
ENOUGH = 3
"""So many bugs that show with a mode must be caught (count): issue 3."""


class Caught(NamedTuple):
    """What `check` made of one bug. row: its title; empty: no job was refuted, and the rest says nothing.

    where     discipline and scope of the failure; commands: that it has (count)
    property  that it names; date: when it was run
    """

    id: str
    row: str
    where: str
    property: str
    commands: int
    date: str

    def __str__(self) -> str:
        return f"{self.row}, {self.where}: {self.property}, {self.commands} commands" if self.row else "NOT CAUGHT"


def modes_of(bug: Bug) -> tuple[str, ...]:
    """The modes that are on where it shows."""
    variant = variant_of(bug.variant, bug.discipline)
    return switched_on(variant.contract, variant.scope)


def refuted(job: Job) -> Failure | None:
    result = importlib.import_module(f"kvproof.engines.{job.engine}").run(job, lambda _: None, lambda: False)
    return result.failure if result.verdict is Verdict.REFUTED else None


def alone(job: Job, wanted: Variant) -> Failure | None:
    """The job with one of its variants."""
    with pytest.MonkeyPatch.context() as patch:
        if job.options.get("modes"):
            patch.setattr(conform, "variants_of", lambda *_: [wanted])
        return refuted(job)


def first_refuted(name: str) -> tuple[str, str, str, int]:
    """In the interpreter that has the bug: row, where, property and number of commands; all empty: none is refuted."""
    require_planted()
    bug = BY_ID[name]
    jobs = jobs_for(bug)
    ways = [(title, job, partial(alone, job, own)) for title, job in jobs if (own := own_variant(bug, job))]
    ways += [(title, job, partial(refuted, job)) for title, job in jobs]
    for title, job, way in ways:
        if failure := way():
            return title, f"{job.discipline} {failure.scope_name}", failure.property, len(failure.commands)
    return "", "", "", 0


def jobs_for(bug: Bug) -> list[tuple[str, Job]]:
    """What `check` asks of a target, with the titles of the rows: what samples last, and before that those of the bug's
    discipline first, cheap ones first."""
    planned = plan.build(plan.Selection())
    rows = [row for row in planned.rows for cell in row.cells.values() for _ in cell.jobs]
    jobs = sorted(
        zip(planned.seconds, rows, planned.jobs, strict=True),
        key=lambda one: (not one[1].row.exhaustive, one[2].discipline != bug.discipline, one[0]),
    )
    return [(row.title, job) for _, row, job in jobs if job.engine not in ("explore", "prove")]


def own_variant(bug: Bug, job: Job) -> Variant | None:
    """The variant of the bug's record, if a job that searches or walks has it."""
    if f"{job.engine} {job.device}" != bug.engine:
        return None
    base = Variant(job.scope_name, job.scope, job.contract)
    has = variants_of(base, job.options.get("modes"))
    wanted = variant_of(bug.variant, bug.discipline)
    return next((one for one in has if one[1:] == wanted[1:]), None)


def caught_by(bug: Bug) -> Caught:
    """What `first_refuted` says in an interpreter of its own. TimeoutError: nothing is known."""
    row, where, broken, commands = answer_of(bug, "tests.bugs.in_check", f"first_refuted({bug.id!r})", LIMIT)
    return Caught(bug.id, row, where, broken, commands, datetime.now(UTC).date().isoformat())


def kept() -> dict[str, Caught]:
    if not FILE.exists():
        return {}
    return {one["id"]: Caught(**one) for one in json.loads(FILE.read_text())}


def keep(found: Caught) -> None:
    """Add a line, in place of an older one."""
    known = kept() | {found.id: found}
    lines = [json.dumps(known[bug.id]._asdict()) for bug in BANK if bug.id in known]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def by_mode(known: Mapping[str, Caught]) -> dict[str, list[Bug]]:
    """Every mode, and the bugs that show with it and that `check` was seen to catch."""
    caught = [bug for bug in BANK if bug.id in known and known[bug.id].row]
    return {mode: [bug for bug in caught if mode in modes_of(bug)] for mode in MODES}


def lacking(known: Mapping[str, Caught]) -> Iterator[str]:
    """The modes that have too few bugs, a sentence each."""
    for mode, bugs in by_mode(known).items():
        if len(bugs) < ENOUGH:
            yield f"{mode} has {len(bugs)} bugs that check was seen to catch; {ENOUGH} are wanted"


def table(known: Mapping[str, Caught]) -> Iterator[str]:
    yield "| mode | bugs | caught by |"
    yield "| --- | --- | --- |"
    for mode, bugs in by_mode(known).items():
        rows = dict.fromkeys(known[bug.id].row for bug in bugs)
        yield f"| {mode} | {len(bugs)}: {', '.join(bug.id for bug in bugs)} | {', '.join(rows)} |"


def write_readme() -> None:
    before, _, rest = README.read_text().partition(BEGIN)
    lines = "\n".join(table(kept()))
    README.write_text(f"{before}{BEGIN}\n\n{lines}\n\n{END}{rest.partition(END)[2]}")


def try_all(bugs: Sequence[Bug]) -> int:
    """Print what comes of each and keep it; how many were given up, of which nothing is kept."""
    given_up = 0
    with ThreadPoolExecutor(CORES) as pool:
        for bug, tried in [(bug, pool.submit(caught_by, bug)) for bug in bugs]:
            try:
                one = tried.result()
            except TimeoutError as error:
                given_up += 1
                print(f"{bug.id:34} {error}", flush=True)
            else:
                print(f"{one.id:34} {one}", flush=True)
                keep(one)
    return given_up


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bugs.in_check", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--again", action="store_true", help="also those that have a line")
    parser.add_argument("--mode", choices=list(MODES), action="append", help="those that show with this mode")
    parser.add_argument("--readme", action="store_true", help="only write the table of modes into README.md")
    asked = parser.parse_args(arguments)
    unknown = set(asked.ids) - BY_ID.keys()
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank")
    given_up = 0
    if not asked.readme:
        known = {} if asked.again else kept()
        wanted = set(asked.mode or ())
        bugs = [BY_ID[name] for name in asked.ids] or [
            bug for bug in BANK if bug.id not in known and (not wanted or wanted & set(modes_of(bug)))
        ]
        given_up = try_all(bugs)
    write_readme()
    lines = kept()
    caught = sum(bool(one.row) for one in lines.values())
    print(f"{caught} of the {len(lines)} that were tried are caught by kvproof check")
    wrong = list(lacking(lines))
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong or given_up or caught < len(lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
