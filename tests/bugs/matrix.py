"""The kill matrix: what the exhaustive engines make of every bug, and what must hold of that.

A bug of kvoffload is looked for by the product search or by walks on real bytes, a lie of the adapter by the product
search, a bug of a rule of the machine by `explore`.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import NamedTuple

from kvspecs.catalogue import NAMES
from tests.bugs import rules
from tests.bugs.bank import BY_ID
from tests.bugs.bug import Bug, variant_of
from tests.bugs.hunt import hunt, searched
from tests.bugs.lies import Lie

CORES = 2
SMALLEST = "s1"
"""Where a bug is looked for before the variant of its record: that one is needed only if this shows nothing."""

MOST_COMMANDS, MOST_STATES, MOST_SECONDS = 25, 50_000, 3.0
"""What a kill may take: commands of the trace, states (counts), and processor time, so that a machine that has other
things to do does not matter."""
MOST_SECONDS_IN_ALL = 180.0
"""What the whole matrix may take of each core."""


class Kill(NamedTuple):
    """What one engine made of one bug. killed: as the record says, property, scope and number of commands alike.

    property  that is broken; empty: nothing was found
    commands, states  of the way to it, and visited (counts); seconds: of processor time
    """

    id: str
    kind: str
    engine: str
    where: str
    killed: bool
    property: str
    commands: int
    states: int
    seconds: float

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "kind": self.kind,
            "property": self.property,
            "engine": self.engine,
            "killed": self.killed,
            "commands": self.commands,
            "states": self.states,
            "seconds": round(self.seconds, 3),
        }


def of_bugs(bugs: Sequence[Bug]) -> Iterator[Kill]:
    """Bugs of kvoffload, in the order of the bank; two hunts at a time."""
    with ThreadPoolExecutor(CORES) as pool:
        yield from pool.map(_of_bug, bugs)


def _of_bug(bug: Bug) -> Kill:
    """At the smallest scope first; stops at the first kill."""
    variant = SMALLEST if bug.engine == "conform ledger" else bug.variant
    caught = hunt(bug, bug.engine, variant)
    if not caught.property and variant != bug.variant:
        variant = bug.variant
        caught = hunt(bug, bug.engine, variant)
    killed = (caught.property, variant, len(caught.commands)) == (bug.property, bug.variant, bug.commands)
    where = f"{bug.discipline} {variant}"
    found = (caught.property, len(caught.commands), caught.states, caught.seconds)
    return Kill(bug.id, bug.kind, bug.engine, where, killed, *found)


def of_lies(lies: Iterable[Lie]) -> Iterator[Kill]:
    for lie in lies:
        caught = searched(variant_of(lie.variant, lie.discipline), lie.target)
        killed = (caught.property, len(caught.commands)) == (lie.property, lie.commands)
        where = f"{lie.discipline} {lie.variant}"
        found = (caught.property, len(caught.commands), caught.states, caught.seconds)
        yield Kill(lie.id, "adapter", "conform ledger", where, killed, *found)


def of_rules(names: Iterable[str]) -> Iterator[Kill]:
    for name in names:
        found = rules.explored(name)
        killed = (found.property, found.commands) == rules.recorded(name)
        yield Kill(name, "rule", "explore", rules.where(name), killed, *found)


def lost(kills: Iterable[Kill]) -> Iterator[str]:
    """What is wrong, a sentence each: bugs that are not caught as recorded, and kills that take too much."""
    for kill in kills:
        if not kill.killed:
            outcome = f"broke {kill.property} after {kill.commands} commands" if kill.property else "broke nothing"
            yield f"{kill.id} is not caught as recorded: at {kill.where} it {outcome}"
        for amount, most, unit in (
            (kill.commands, MOST_COMMANDS, "commands"),
            (kill.states, MOST_STATES, "states"),
            (kill.seconds, MOST_SECONDS, "s of processor time"),
        ):
            if amount > most:
                yield f"{kill.id} takes {amount:g} {unit}; {most:g} are allowed"


def unbroken(kills: Iterable[Kill]) -> list[str]:
    """Properties that no bug of kvoffload breaks, so that nothing shows that they can fail there."""
    broken = {kill.property for kill in kills if kill.id in BY_ID}
    return [name for name in NAMES if name not in broken]


def by_kind(kills: Sequence[Kill]) -> Iterator[tuple[str, int, int, float]]:
    """Of each kind: its name, how many are killed, how many there are, and the median of the seconds."""
    for kind in dict.fromkeys(kill.kind for kill in kills):
        own = [kill for kill in kills if kill.kind == kind]
        yield kind, sum(kill.killed for kill in own), len(own), median([kill.seconds for kill in own])
