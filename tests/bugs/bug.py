"""One planted bug: what is broken, and how that is found."""

from dataclasses import dataclass
from typing import Literal

from kvmodel.contract import Contract, Discipline
from kvproof.scopes import parse_scope
from kvproof.search.modes import MODES, Variant
from tests.bugs.reports import REPORTS, Report

Kind = Literal["pool", "connector", "completion", "store", "scheduler", "ordering", "device", "event"]
Engine = Literal["conform ledger", "conform host"]
"""Both are exhaustive at their scopes."""


@dataclass(frozen=True)
class Bug:
    """One small mutation of kvoffload.

    kind       the part of kvoffload that it is in
    mechanism  what goes wrong, in one sentence
    source     link of the public report (tests/bugs/reports.py) that has the same mechanism; or "planted"
    file       below impl/kvoffload; `old`, which occurs there exactly once, is replaced by `new`
    discipline, variant   where it is looked for: the smallest variant that finds it
    property   that it breaks; commands: how many the shortest way to that takes (count)
    twin       id of the same bug where the books disagree: a count gives that one away, and not this one. Empty: none
    engine     `conform ledger`: the product search. Where that sees nothing: `conform host`, the walks with real bytes.
    """

    id: str
    kind: Kind
    mechanism: str
    source: str
    file: str
    old: str
    new: str
    discipline: Discipline
    variant: str
    property: str
    commands: int
    engine: Engine = "conform ledger"
    twin: str = ""


def report_of(bug: Bug) -> Report | None:
    """The public report that a bug is taken from; None: it is of our own making. KeyError if nobody entered it."""
    return None if bug.source == "planted" else REPORTS[bug.source]


def variant_of(name: str, discipline: Discipline) -> Variant:
    """The variant of a name such as `s2+first`, or `s1,host=2+lazy`. Raises BadScope."""
    words = name.split("+")
    modes: list[str] = []
    while words[-1] in MODES:
        modes.insert(0, words.pop())
    _, scope = parse_scope("+".join(words))
    variant = Variant(name, scope, Contract(discipline))
    for mode in modes:
        variant = MODES[mode](variant)
    return variant
