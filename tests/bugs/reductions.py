"""Whether the searches see less because they reduce: every bug is looked for with nothing reduced as well.

    python -m tests.bugs.reductions [ID ...]     those named, or those that have no line yet, and keep what is found
    python -m tests.bugs.reductions --again      all of them anew
    python -m tests.bugs.reductions --readme     only write what is kept into README.md

What is reduced: blocks, jobs, steps and workers have canonical names; bytes that nothing can read are blanked; and the
product search judges of a step to a pair that it knows the step, and not once more where it leads, does not look again
at what it met shortly before, and asks the invariants of the proofs at a sample of its pairs. Unreduced, each name and
each byte counts, and every step is judged in full. Both searches are breadth-first, so both must name the same property
after the same number of commands. The unreduced one may have no end (ids are never used again), and is given up after
so many pairs or so much time; then nothing is known. It ends with 1 if they differ on a bug, and no reason is known.

The searches of modes, and what `check --all` adds, reduce further: one state stands for others that differ in what may
still occur (`kvproof.search.allowance`). So every bug is looked for in that way too.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from kvmodel import Action, Machine, State
from kvmodel.contract import Contract, Discipline
from kvproof.search import graph, product
from kvproof.search.canonical import Renaming
from kvproof.search.modes import Variant
from kvproof.search.product import Product
from kvproof.targets.command import Command
from kvproof.targets.registry import load
from kvproof.targets.target import opened
from tests.bugs import rules
from tests.bugs.bank import BANK, BY_ID
from tests.bugs.bug import Bug, variant_of
from tests.bugs.interpreter import answer_of, require_planted
from tests.bugs.lies import LIES, Lie

FOLDER = Path(__file__).parent
FILE = FOLDER / "reductions.json"
README = FOLDER / "README.md"
BEGIN, END = "<!-- reductions: written by python -m tests.bugs.reductions --readme -->", "<!-- end of reductions -->"
MOST_PAIRS = 40_000
"""Nodes after which the unreduced search of a bug is given up (count)."""
MOST_SECONDS = 30.0
"""The same, of processor time."""
LIMIT = 900.0
"""Elapsed seconds after which an interpreter that does not answer is given up: a mutant may go round in circles."""


class Seen(NamedTuple):
    """What one search has seen.

    broken    the property; empty: none is. commands: of the shortest way to that (count)
    nodes     visited until then (count); finished: it was not given up
    """

    broken: str
    commands: int
    nodes: int
    finished: bool

    def __str__(self) -> str:
        return f"{self.broken or 'nothing'} after {self.commands} commands, {self.nodes} nodes"


class Looked(NamedTuple):
    """One bug, lie or bug of a rule, looked for in each way; where: discipline and scope.

    reduced, whole  as the named scopes are searched, and with nothing reduced
    further         as the reduced rows of `check --all` are searched
    """

    id: str
    where: str
    reduced: Seen
    whole: Seen
    further: Seen

    @property
    def finished(self) -> bool:
        return self.reduced.finished and self.whole.finished

    @property
    def agree(self) -> bool:
        """The same property, after as many commands, with nothing reduced. Says nothing unless both have finished."""
        return self.reduced[:2] == self.whole[:2]

    @property
    def agree_further(self) -> bool:
        """The same property, after as many commands, where one state stands for others."""
        return self.reduced[:2] == self.further[:2] and self.further.finished

    def __str__(self) -> str:
        outcome = ("agree" if self.agree else "DIFFER") if self.finished else "given up"
        return f"{self.id:34} {outcome:8} {self.reduced}; unreduced {self.whole}; reduced further {self.further}"

    def as_json(self) -> dict[str, object]:
        ways = {"reduced": self.reduced, "whole": self.whole, "further": self.further}
        return {**self._asdict(), **{way: seen._asdict() for way, seen in ways.items()}}


class Unreduced(Product):
    """Judges every step in full, to known pairs too, and remembers no place. `own_names` keeps names and bytes."""

    def _add(self, reached: Any, parent: int, command: Command | None) -> bool:
        super()._add(reached, parent, command)
        return True

    def _met_again(self, actions: tuple[Action, ...], state: State, snapshot: Hashable) -> None:
        return None

    def _asks_proofs(self) -> bool:
        return self.invariants.specification is not None


def own_names(contract: Contract, state: State) -> tuple[State, Renaming]:
    """In place of the canonical state: the state itself, with every name as it is."""
    workers = tuple(range(len(state.device_contents)))
    jobs = {number: number for number in range(state.next_job)}
    steps = {step.id: step.id for step in state.steps}
    device, host, second = (list(range(len(pool.refs))) for pool in (state.device, state.host, state.second))
    return state, Renaming(device, host, jobs, steps, workers, second)


def searched(kind: type[Product], variant: Variant, target_class: type, further: bool = False) -> Seen:
    """The product search of a target, until something is broken or it is given up."""
    machine = Machine(variant.contract, variant.scope)
    target = opened(target_class, machine.setting)
    search = kind(machine, target, composites=True, allowance=further, late=further)  # type: ignore[arg-type]
    found = search.search(_given_up(lambda: search.pairs), lambda _: None)
    broken = "" if found.divergence is None else found.divergence.property
    return Seen(broken, len(found.commands), found.pairs, found.finished or bool(broken))


def explored(machine: Machine, further: bool = False) -> Seen:
    """The search of a machine alone, until something is broken or it is given up."""
    search = graph.Graph(machine, allowance=further)
    found = search.explore(_given_up(lambda: len(search.states)), lambda _: None)
    if found.violation is None:
        return Seen("", 0, found.states, found.finished)
    return Seen(found.violation.property, len(found.violation.path), found.states, True)


def _given_up(nodes: Callable[[], int]) -> Callable[[], bool]:
    started = time.process_time()
    return lambda: nodes() > MOST_PAIRS or time.process_time() - started > MOST_SECONDS


def each_way(variant: Variant, target_class: type) -> tuple[Seen, Seen, Seen]:
    """As in `Looked`: reduced, whole, further."""
    reduced, further = (searched(Product, variant, target_class, more) for more in (False, True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "canonical_with", own_names)
        return reduced, searched(Unreduced, variant, target_class), further


def of_planted(discipline: Discipline, name: str) -> tuple[Seen, Seen, Seen]:
    """In the interpreter that has the bug."""
    require_planted()
    return each_way(variant_of(name, discipline), load("kvoffload", "ledger"))


def of_bug(bug: Bug) -> Looked:
    """Raises TimeoutError."""
    answer = answer_of(bug, "tests.bugs.reductions", f"of_planted({bug.discipline!r}, {bug.variant!r})", LIMIT)
    return Looked(bug.id, f"{bug.discipline} {bug.variant}", *(Seen(*seen) for seen in answer))


def of_lie(lie: Lie) -> Looked:
    return Looked(
        lie.id, f"{lie.discipline} {lie.variant}", *each_way(variant_of(lie.variant, lie.discipline), lie.target)
    )


def of_rule(name: str) -> Looked:
    plant = rules.BY_NAME[name]
    with pytest.MonkeyPatch.context() as patch:
        plant.plant(patch)
        machine = Machine(plant.contract, plant.scope)
        reduced, further = explored(machine), explored(machine, further=True)
        patch.setattr(graph, "canonical", lambda contract, state: state)
        return Looked(name, rules.where(name), reduced, explored(machine), further)


def ids() -> list[str]:
    """Of all that a search looks for. Walks on real bytes, which a few bugs need, have no unreduced form."""
    searched_for = [bug.id for bug in BANK if bug.engine == "conform ledger"]
    return [*searched_for, *(lie.id for lie in LIES), *rules.BY_NAME]


def kept() -> dict[str, Looked]:
    if not FILE.exists():
        return {}
    return {
        one["id"]: Looked(one["id"], one["where"], *(Seen(**one[way]) for way in ("reduced", "whole", "further")))
        for one in json.loads(FILE.read_text())
    }


def keep(found: Looked) -> None:
    """Add a line, in place of an older one."""
    known = kept() | {found.id: found}
    lines = [json.dumps(known[name].as_json()) for name in ids() if name in known]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


BY_NUMBER = {
    "fence-mixes-tiers": "compares the number of a device block with that of a host block",
    "reports-for-others": "chooses the worker with the lowest number",
    "rule-a-store-that-was-put-off-names-what-the-window-has-left": "takes a position in a prompt for a block's number",
}
"""Bugs that go by the number of a block or worker. Canonical names are right for code that takes all numbers alike: of
states that differ in numbers alone one is followed, and such a bug may show in another one, sooner or not at all."""


def unexplained(lines: Collection[Looked]) -> list[str]:
    """Where both have finished and differ, though the bug goes by no number, or one state does not stand for others."""
    differ = [one.id for one in lines if one.finished and not one.agree and one.id not in BY_NUMBER]
    return [*differ, *[one.id for one in lines if not one.agree_further]]


def said(lines: Collection[Looked]) -> str:
    """What came of it, for README.md."""
    finished = [one for one in lines if one.finished]
    given_up, differ = [one.id for one in lines if not one.finished], [one.id for one in finished if not one.agree]
    further = [one.id for one in lines if not one.agree_further]
    times = median([one.whole.nodes / one.reduced.nodes for one in finished])
    why = [f"{name} ({BY_NUMBER.get(name, 'nobody knows why')})" for name in differ]
    return "\n".join(
        [
            f"* {len(lines)} of {len(ids())} were looked for in each way; reduced and unreduced searches ended for"
            f" {len(finished)}.",
            f"* They agree on {len(finished) - len(differ)}. They differ on {'; '.join(why) or 'none'}.",
            f"* Unreduced, the median search visits {times:.1f} times as many nodes.",
            f"* Given up unreduced, so that nothing is known: {', '.join(given_up) or 'none'}.",
            "* Where one state stands for others besides, as in what `check --all` reduces, "
            f"{len(lines) - len(further)} are found by the same property after as many commands. Otherwise: "
            f"{', '.join(further) or 'none'}.",
        ]
    )


def write_readme() -> None:
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n\n{said(kept().values())}\n\n{END}{rest.partition(END)[2]}")


def found(names: Sequence[str]) -> Iterator[Looked]:
    lies = {lie.id: lie for lie in LIES}
    for name in names:
        if name in rules.BY_NAME:
            yield of_rule(name)
        elif name in lies:
            yield of_lie(lies[name])
        else:
            yield of_bug(BY_ID[name])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bugs.reductions", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--again", action="store_true", help="also those that have a line")
    parser.add_argument("--readme", action="store_true", help="only write what is kept into README.md")
    asked = parser.parse_args(arguments)
    unknown = set(asked.ids) - set(ids())
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank that a search finds")
    known = {} if asked.again else kept()
    names = asked.ids or [name for name in ids() if name not in known]
    for one in found([] if asked.readme else names):
        print(one, flush=True)
        keep(one)
    write_readme()
    lines = kept().values()
    print(said(lines))
    return 1 if unexplained(lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
