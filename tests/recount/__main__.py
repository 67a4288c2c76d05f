"""Counts states and transitions twice, by rumur in a Murphi model and by kvproof's search, and prints both.

python -m tests.recount            the scopes of SCOPES, both disciplines
python -m tests.recount SCOPE ...  these scopes alone, such as s3,host=3

It ends with 1 if one number differs, with 2 if they cannot be counted.
"""

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from kvmodel import BadScope, Contract, Machine, State
from kvmodel.contract import DISCIPLINES, Discipline
from kvmodel.scope import Scope
from kvproof.scopes import parse_scope
from kvproof.search import canonical
from kvproof.search.graph import Graph
from tests.recount.model import NotCounted, missing_tools, recounted, refusal_of, source_of

BUILD = Path(__file__).parents[2] / "build" / "recount"
SMALL = ("s1", "s2")
SCOPES = (*SMALL, "s1,resets=2", "s1,meanings=invalidate+evict", "s1,prompts=ab+a,preempts=no", "s3,aborts=no,resets=0")


class Row(NamedTuple):
    """One model counted twice: (states, transitions) of each. blank: contents that nothing reads are forgotten."""

    discipline: str
    scope: str
    blank: bool
    murphi: tuple[int, int]
    kvproof: tuple[int, int]

    @property
    def agrees(self) -> bool:
        return self.murphi == self.kvproof


def counted(discipline: Discipline, scope: Scope, blank: bool) -> tuple[int, int]:
    """States and transitions of kvproof's search up to names, with contents blanked where nothing reads them or not."""
    graph = Graph(Machine(Contract(discipline), scope))
    if blank:
        found = graph.explore(lambda: False, lambda said: None)
    else:
        with patch.object(canonical, "live_contents", all_contents):
            found = graph.explore(lambda: False, lambda said: None)
    if not found.finished or found.violation is not None:
        raise NotCounted(f"kvproof did not count to the end: {found.violation}")
    return found.states, found.transitions


def all_contents(state: State) -> tuple[list[list[int]], ...]:
    """In the place of `canonical.live_contents`: contents as they are."""
    tiers = (state.device_contents, state.host_contents, state.second_contents)
    return tuple([list(row) for row in tier] for tier in tiers)


def rows(names: Sequence[str]) -> Iterator[Row]:
    for name in names:
        text, scope = parse_scope(name)
        for discipline in DISCIPLINES:
            for blank in (True, False):
                folder = BUILD / f"{discipline} {text} {'live' if blank else 'all'} contents"
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                murphi = recounted(source_of(discipline, scope, blank), folder)
                yield Row(discipline, text, blank, murphi, counted(discipline, scope, blank))


def main(names: Sequence[str]) -> int:
    missing = missing_tools()
    if missing:
        return refused(f"not installed: {' and '.join(missing)}; on Debian: apt-get install {' '.join(missing)}")
    try:
        for name in names:
            if why := refusal_of(parse_scope(name)[1]):
                return refused(f"scope {name!r:.80} cannot be recounted: {why}")
    except BadScope as error:
        return refused(str(error))
    try:
        return printed(rows(names or SCOPES))
    except NotCounted as error:
        return refused(str(error))


def refused(sentence: str) -> int:
    print(f"recount: {sentence}", file=sys.stderr)
    return 2


def printed(rows: Iterable[Row]) -> int:
    """Print each as it is counted, and answer the exit status."""
    differ = 0
    began = time.monotonic()
    print(f"{'discipline':10}  {'scope':30}  {'contents':8}  {'rumur':>19}  {'kvproof':>19}")
    for row in rows:
        differ += not row.agrees
        pairs = [f"{states:,}/{transitions:,}" for states, transitions in (row.murphi, row.kvproof)]
        verdict = "" if row.agrees else "  DIFFERENT"
        contents = "live" if row.blank else "all"
        line = f"{row.discipline:10}  {row.scope:30}  {contents:8}  {pairs[0]:>19}  {pairs[1]:>19}{verdict}"
        print(line, flush=True)
    print(f"{differ} of them differ" if differ else "all agree", f"({time.monotonic() - began:.0f} s)")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
