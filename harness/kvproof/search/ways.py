"""Ways: commands that together meet every pair of action and phase of a scope, found once and kept in a file.

To find all pairs a scope must be explored wholly, which for s3 under fencing takes minutes; to walk them takes seconds.
So the check walks what the file says, and holds what it met against the pairs that the file lists. The product search
of the same scope holds the file against all that there is: `check` under pinning, `check --all` under fencing.
`python -m kvproof.search.ways` writes the files.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from kvmodel import Contract, Machine
from kvmodel.contract import DISCIPLINES, Discipline
from kvproof.scopes import SCOPES
from kvproof.search.phases import Label, pairs_of
from kvproof.search.walks import Pairs, named
from kvproof.targets.command import Command, validated
from kvproof.targets.wording import command_of


class Ways(NamedTuple):
    """states: how many were explored. pairs: every pair of action and phase among them, as text. ways: commands."""

    states: int
    pairs: frozenset[str]
    ways: tuple[tuple[Command, ...], ...]


def written(label: Label) -> str:
    """A pair as text, the same in every process."""
    return json.dumps(label)


def read(discipline: Discipline, scope_name: str) -> Ways | None:
    """The kept ways of a scope in its default modes, or None if none are kept."""
    file = files("kvproof.search").joinpath(f"ways-{discipline}-{scope_name}.json")
    if not file.is_file():
        return None
    data = json.loads(file.read_text(encoding="utf-8"))
    scope = SCOPES[scope_name]
    ways = tuple(tuple(validated(Command(verb, tuple(args)), scope) for verb, *args in way) for way in data["ways"])
    return Ways(data["states"], frozenset(data["pairs"]), ways)


def found(machine: Machine, pairs: Pairs) -> Ways:
    """Ways from a whole exploration: longest first, those left out whose pairs longer ones meet on their way."""
    left = set(pairs.ways)
    ways: list[tuple[Command, ...]] = []
    for label, way in sorted(pairs.ways.items(), key=lambda item: -len(item[1])):
        if label not in left:
            continue
        state = machine.initial()
        commands: list[Command] = []
        for action in way:
            action = named(machine, state, action)
            left.difference_update(pairs_of(state, action))
            commands.append(command_of(action))
            state = machine.step(state, action)
        ways.append(tuple(commands))
    return Ways(pairs.states, frozenset(map(written, pairs.ways)), tuple(ways))


def main() -> None:
    """Explore s3 in both disciplines and write the files. Takes some ten minutes and 6 GB."""
    for discipline in DISCIPLINES:
        machine = Machine(Contract(discipline), SCOPES["s3"])
        ways = found(machine, Pairs(machine, lambda: False))
        data = {
            "about": "written by python -m kvproof.search.ways",
            "states": ways.states,
            "pairs": sorted(ways.pairs),
            "ways": [[[command.verb, *command.args] for command in way] for way in ways.ways],
        }
        path = Path(__file__).with_name(f"ways-{discipline}-s3.json")
        path.write_text(json.dumps(data, indent=0) + "\n", encoding="utf-8")
        said = f"{len(ways.pairs)} pairs of {ways.states:,} states in {len(ways.ways)} ways"
        print(f"{path.name}: {said}", file=sys.stderr)


if __name__ == "__main__":
    main()
