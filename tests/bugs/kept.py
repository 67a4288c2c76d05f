"""What was found, as it is kept in the repository, and docs/kill-matrix.md, which is made of it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.bugs import rules
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.lies import LIES
from tests.bugs.matrix import Kill, by_kind
from tests.bugs.planting import ROOT
from tests.bugs.reports import REPORTS
from tests.proofs.bugs import named_failures

FILE = Path(__file__).parent / "kills.json"
PAGE = ROOT / "docs" / "kill-matrix.md"
BEGIN, END = "<!-- tables: written by python -m tests.bugs --page -->", "<!-- end of tables -->"
SAMPLING = ("fuzz", "soak", "suite")
"""What every bug of kvoffload is given to at night, beside the engine that is exhaustive."""
HEAD = ("id", "in", "source", "caught by", "where", "property", "commands", "states", "seconds")


def ids() -> list[str]:
    """Of every bug, lie, rule and line of the specification, in the order of the table."""
    return [*(bug.id for bug in BANK), *(lie.id for lie in LIES), *rules.BY_NAME, *named_failures()]


EXHAUSTIVE = "exhaustive"
"""In place of the name of the one engine that a bug is recorded with."""


def _slot(kill: Kill) -> tuple[str, str]:
    return kill.id, kill.engine if kill.engine in SAMPLING else EXHAUSTIVE


Known = dict[tuple[str, str], tuple[Kill, str]]
"""By id, and engine or EXHAUSTIVE: what was made of it, and when."""


def read() -> Known:
    if not FILE.exists():
        return {}
    return {_slot(kill): (kill, on) for kill, on in ((_kill(one), one["date"]) for one in json.loads(FILE.read_text()))}


def _kill(kept: dict[str, object]) -> Kill:
    return Kill(**{name: kept[name] for name in Kill._fields})  # type: ignore[arg-type]


def keep(kills: Iterable[Kill]) -> None:
    """Add kills, each in place of an older one of the same bug and engine, and write the page."""
    date = datetime.now(UTC).date().isoformat()
    known = read() | {_slot(kill): (kill, date) for kill in kills}
    order = {name: number for number, name in enumerate(ids())}
    lines = [
        json.dumps({**kill._asdict(), "seconds": round(kill.seconds, 2), "date": on})
        for (name, _), (kill, on) in sorted(known.items(), key=lambda item: (order.get(item[0][0], -1), item[0][1]))
        if name in order
    ]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    write_page()


def write_page() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{rest.partition(END)[2]}")


def tables() -> str:
    """Every kind, and every bug with what the exhaustive engines and the others made of it."""
    known = read()
    found = [known[name, EXHAUSTIVE][0] for name in ids() if (name, EXHAUSTIVE) in known]
    lines = [_line(kill, known) for kill in found]
    return "\n".join([*summary(found), "", *_when(known.values()), "", *_table((*HEAD, *SAMPLING), lines)])


def summary(found: Sequence[Kill]) -> list[str]:
    """The short table: kinds, how many of each are killed, and how fast."""
    lines = [(kind, f"{killed} of {of}", f"{middle:.2f} s") for kind, killed, of, middle in by_kind(found)]
    whole = (f"all {len(found)}", f"{sum(kill.killed for kill in found)} of {len(found)}", "")
    return _table(("in", "killed", "median"), [*lines, whole])


def _when(kept: Iterable[tuple[Kill, str]]) -> Iterator[str]:
    """Each engine: how many bugs it was given, how many it killed, and when."""
    known = list(kept)
    for engine in sorted({kill.engine for kill, _ in known}):
        own = [(kill, on) for kill, on in known if kill.engine == engine]
        killed, days = sum(kill.killed for kill, _ in own), sorted({on for _, on in own})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        yield f"* `{engine}`: {killed} of the {len(own)} that it was given, {when}"


def _line(kill: Kill, known: Known) -> tuple[str, ...]:
    others = [_other(known.get((kill.id, engine))) for engine in SAMPLING]
    numbers = (str(kill.commands or "-"), str(kill.states or "-"), f"{kill.seconds:.2f}")
    return (kill.id, kill.kind, source_of(kill.id), kill.engine, kill.where, kill.property, *numbers, *others)


def _other(kept: tuple[Kill, str] | None) -> str:
    """What another engine made of it: blank if that was not run."""
    if kept is None:
        return ""
    return kept[0].property or "no"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines)]


def source_of(name: str) -> str:
    """A link under the name of the engine and the kind and number of the report, with its date."""
    if name in rules.BY_NAME:
        return rules.BY_NAME[name].source
    bug = BY_ID.get(name)
    if bug is None or bug.source == "planted":
        return "planted"
    report = REPORTS[bug.source]
    *_, kind, number = bug.source.split("/")
    return f"[{report.engine} {'PR' if kind == 'pull' else 'issue'} {number}]({bug.source}), {report.date}"
