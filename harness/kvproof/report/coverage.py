"""What several results together have covered.

Engines say it through the names of their counts. A name with one of these prefixes is a thing that can be covered, and
counts how often it was; an engine lists with 0 what it could reach and did not. Results are added up by name.

    action:Launch        an action of the machine that was taken
    guard:admit/no-room  an outcome of a guard (what a rule decided)
    field:tables         a field of the target's view that was compared
    phase:Wake LOADING   an action in a phase, in words (kvproof.search.phases)     } these three are followed
    mode:lazy            a step with this mode on                                   } for `kvproof coverage` alone
    then:Launch > Run    a state that the first leads into and the second out of    }

Other names are amounts, and reports understand `edges`, `pairs`, `commands`, `copies`, `bytes`, each with
`planned_edges` and so on where there was a plan.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from kvproof.verdict import Result

ACTION, GUARD, FIELD = "action:", "guard:", "field:"
PHASE, MODE, THEN = "phase:", "mode:", "then:"


class Covered(NamedTuple):
    """How much of one kind of thing was covered, and the names of what was not, in alphabetical order."""

    reached: int
    total: int
    missing: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.reached}/{self.total}"


class Coverage(NamedTuple):
    actions: Covered
    guards: Covered
    fields: Covered

    @property
    def missing(self) -> tuple[str, ...]:
        """Actions and guard outcomes that nothing reached, and view fields that nothing compared."""
        return self.actions.missing + self.guards.missing + self.fields.missing

    def __bool__(self) -> bool:
        return any(covered.total for covered in self)


def merged(results: Iterable[Result]) -> Counter[str]:
    """The counts of all results, added up by name; a name that was only ever counted 0 times stays."""
    counts: Counter[str] = Counter()
    for result in results:
        for name, count in result.counts.items():
            counts[name] += count
    return counts


def coverage(results: Iterable[Result]) -> Coverage:
    """What the results have covered together."""
    counts = merged(results)

    def of(prefix: str) -> Covered:
        names = sorted(name for name in counts if name.startswith(prefix))
        missing = tuple(name for name in names if not counts[name])
        return Covered(len(names) - len(missing), len(names), missing)

    return Coverage(of(ACTION), of(GUARD), of(FIELD))
