"""What each engine has covered of the machine, in full: for people, and for machines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kvproof.report.coverage import ACTION, GUARD, MODE, PHASE, THEN, merged
from kvproof.verdict import Result, overall

SCHEMA = 1

KINDS: Mapping[str, str] = {
    "actions": ACTION,
    "guard outcomes": GUARD,
    "modes": MODE,
    "phases": PHASE,
    "consecutive actions": THEN,
}
"""What is counted -> the prefix of its names."""

ABOUT: Mapping[str, str] = {
    "actions": "steps of the machine that the engine asked for",
    "guard outcomes": "how often each question of a rule was answered yes, and no",
    "modes": "steps with this mode on",
    "phases": "steps by what the action concerned: a request in its phase, or a job as far as each worker is with it",
    "consecutive actions": "states that the first action leads into and the second out of",
}

CLOSED = ("actions", "guard outcomes", "modes")
"""Kinds of which everything that there could be is known; of the others what some engine has met."""


class Table(NamedTuple):
    """One kind of thing: how often each engine met each, by name and then by engine."""

    kind: str
    counts: Mapping[str, Mapping[str, int]]

    def reached(self, engine: str) -> int:
        return sum(of[engine] > 0 for of in self.counts.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """What no engine met."""
        return tuple(name for name, of in self.counts.items() if not any(of.values()))


def tables(results: Mapping[str, Sequence[Result]]) -> list[Table]:
    """The results of each engine, by its name, as one table for each kind."""
    counts = {engine: merged(own) for engine, own in results.items()}
    names = sorted({name for of in counts.values() for name in of})
    return [
        Table(
            kind,
            {
                name.removeprefix(prefix): {engine: of[name] for engine, of in counts.items()}
                for name in names
                if name.startswith(prefix)
            },
        )
        for kind, prefix in KINDS.items()
    ]


def text(found: Sequence[Table], engines: Sequence[str]) -> str:
    """The summary, and then every name."""
    return "\n".join(
        [*_summary(found, engines), *_notes(found), *(line for table in found for line in _full(table, engines))]
    )


def _summary(found: Sequence[Table], engines: Sequence[str]) -> Iterator[str]:
    width = max(map(len, KINDS)) + 2
    yield f"{'covered':{width}}{_cells([*engines, 'together'])}"
    for table in found:
        of = len(table.counts)
        together = of - len(table.missing)
        cells = [f"{number:,}/{of:,}" for number in (*map(table.reached, engines), together)]
        yield f"{table.kind:{width}}{_cells(cells)}"


def _notes(found: Sequence[Table]) -> Iterator[str]:
    open_ended = " and ".join(kind for kind in KINDS if kind not in CLOSED)
    yield f"Of {open_ended} there are as many as the engines met together."
    for table in found:
        if table.missing:
            yield f"No engine met {', '.join(table.missing)}."


def _full(table: Table, engines: Sequence[str]) -> Iterator[str]:
    width = max([len(table.kind), *map(len, table.counts)]) + 2
    yield ""
    yield f"{table.kind}: {ABOUT[table.kind]}"
    yield f"{'':{width}}{_cells(engines)}"
    for name, of in table.counts.items():
        yield f"{name:{width}}{_cells([f'{of[engine]:,}' if of[engine] else '-' for engine in engines])}"


def _cells(cells: Sequence[str]) -> str:
    return "".join(f"{cell:>16}" for cell in cells)


def to_json(found: Sequence[Table], results: Sequence[Result]) -> str:
    """`schema`, `verdict` of the runs, and for each kind what was met (`covered`: name, engine, count) and what was
    not by any engine (`missing`)."""
    report = {
        "schema": SCHEMA,
        "verdict": str(overall(results)),
        "coverage": {table.kind: {"covered": table.counts, "missing": table.missing} for table in found},
    }
    return json.dumps(report, indent=2) + "\n"
