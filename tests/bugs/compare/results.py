"""What the comparison has found, as it is kept, and the tables that are made of it."""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.bugs import kept as kills
from tests.bugs.bug import Bug, variant_of

FOLDER = Path(__file__).parent
FILE = FOLDER / "results.json"
README = FOLDER / "README.md"
BEGIN, END = "<!-- tables: written by python -m tests.bugs.compare --readme -->", "<!-- end of tables -->"
DEFAULT_EXAMPLES = 100
"""What Hypothesis does unless it is told otherwise (count)."""
MANY_EXAMPLES = 2_000
QUICK = 1.0
"""Seconds of processor time."""
SEEDS = 5
"""Each way of looking is taken with seeds 0, 1, ... (count)."""


class Compared(NamedTuple):
    """One bug, looked for in one way.

    way    `hypothesis` or `walk`; runs: examples or walks of each seed, at most (count)
    met    seeds that met the bug, of `seeds` that were tried (counts)
    seconds  of processor time, all seeds together; date: when it was done
    """

    id: str
    way: str
    runs: int
    met: int
    seeds: int
    seconds: float
    date: str

    def __str__(self) -> str:
        return f"{self.way} {self.runs}: {self.met} of {self.seeds} seeds, {self.seconds:.1f} s"


def can_be_met(bug: Bug) -> bool:
    """Whether the plain test has what the bug is about. It has no second host tier and no workers that die, and its
    copies have no bytes: that it misses such a bug would say nothing."""
    scope = variant_of(bug.variant, bug.discipline).scope
    return bug.engine == "conform ledger" and not scope.second_blocks and not scope.deaths


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def kept() -> list[Compared]:
    return [Compared(**one) for one in json.loads(FILE.read_text())] if FILE.exists() else []


def by_what() -> dict[tuple[str, str, int], Compared]:
    """What is kept, by bug, way and number of runs."""
    return {one[:3]: one for one in kept()}


def keep(found: Iterable[Compared]) -> None:
    """Add results, each in place of an older one of the same bug, way and number of runs.

    Two calls may look for different bugs at one time.
    """
    with _own_turn():
        lines = [json.dumps(one._asdict()) for one in sorted((by_what() | {one[:3]: one for one in found}).values())]
        FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


@contextmanager
def _own_turn() -> Iterator[None]:
    folder = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def missed() -> list[str]:
    """Bugs that Hypothesis at default settings has met with no seed, those that cost it least first."""
    own = [one for one in kept() if one.way == "hypothesis" and one.runs == DEFAULT_EXAMPLES and not one.met]
    return [one.id for one in sorted(own, key=lambda one: one.seconds / one.seeds)]


def missed_with_every_seed(plain: Iterable[Compared]) -> list[str]:
    return [one.id for one in plain if not one.met and one.seeds == SEEDS]


def quick(names: Iterable[str]) -> list[str]:
    """Those whose recorded kill took less than QUICK."""
    return [name for name in names if kills.read()[name, kills.EXHAUSTIVE][0].seconds < QUICK]


def write_readme() -> None:
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n\n{tables(kept())}\n\n{END}{rest.partition(END)[2]}")


def tables(found: Sequence[Compared]) -> str:
    """A table for each number of examples: every bug that was looked for with it, beside what kvproof made of it."""
    parts: list[str] = []
    for examples in sorted({one.runs for one in found if one.way == "hypothesis"}):
        ids = [one.id for one in found if one.way == "hypothesis" and one.runs == examples]
        plain = {one.id: one for one in found if one.way == "hypothesis" and one.runs == examples}
        walks = {one.id: one for one in found if one.way == "walk" and one.runs == walks_beside(examples)}
        parts += [f"## {examples:,} examples, {walks_beside(examples):,} walks", "", *_summary(plain, walks), ""]
        parts += ["| id | Hypothesis | seconds | random walk | seconds | kvproof: commands | seconds |"]
        parts += ["| --- | --- | --- | --- | --- | --- | --- |"]
        parts += [
            f"| {name} | {_cells(plain[name])} | {_cells(walks.get(name))} | {_of_kvproof(name)} |" for name in ids
        ]
        parts += [""]
    return "\n".join(parts).strip()


def walks_beside(examples: int) -> int:
    """Random walks beside so many examples: more at default settings, since they cost less."""
    return 4 * examples if examples == DEFAULT_EXAMPLES else examples


def _summary(plain: Mapping[str, Compared], walks: Mapping[str, Compared]) -> list[str]:
    days = sorted({one.date for one in plain.values()})
    lines = [f"{len(plain)} bugs, {' to '.join(dict.fromkeys((days[0], days[-1])))}."]
    for name, own in (("Hypothesis", plain), *([("The random walk", walks)] if walks else [])):
        everywhere = sum(one.met == one.seeds for one in own.values())
        nowhere = sum(not one.met for one in own.values())
        of = "them" if len(own) == len(plain) else f"{len(own)}"
        lines.append(f"{name} met {everywhere} of {of} with every seed that was tried, {nowhere} with none.")
    out_of_reach = missed_with_every_seed(plain.values())
    lines.append(
        f"Hypothesis missed {len(out_of_reach)} with all {SEEDS} seeds; kvproof kills {len(quick(out_of_reach))} of "
        "these in a second."
    )
    if walks:
        neither = [name for name in plain if not plain[name].met and name in walks and not walks[name].met]
        lines.append(f"Met by neither, with any seed: {', '.join(neither) or 'none'}.")
    return ["  \n".join(lines)]


def _cells(one: Compared | None) -> str:
    return " | " if one is None else f"{one.met} of {one.seeds} | {one.seconds:.1f}"


def _of_kvproof(name: str) -> str:
    kill = kills.read()[name, kills.EXHAUSTIVE][0]
    return f"{kill.commands} | {kill.seconds:.2f}"
