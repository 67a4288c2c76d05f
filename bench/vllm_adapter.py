"""Commands a second on vLLM's connectors, beside the same walks without any judging: a ratio, measured in one run.

    .venv-vllm/bin/python bench/vllm_adapter.py [commands per turn, default 1500]

Both give random commands to vLLM's scheduler and simulate its workers. The one that judges also reads the engine's
books after every command, and holds them against its obligations. Figures are processor seconds, of all turns together;
the contestants take turns. Exit status 1 if judging takes more than CEILING times as long for a target, or if it makes
less than FLOOR commands a second.
"""

import sys
import time
from itertools import cycle

from kvmodel import Contract, Machine
from kvproof.obligations.judge import Judged
from kvproof.obligations.walk import walk
from kvproof.scopes import SCOPES
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.open_for import opener
from kvproof.targets.outcome import Outcome
from kvproof.targets.registry import load

TARGETS = ("vllm-simple", "vllm-offloading")
TURNS = 5
CEILING = 1.5
FLOOR = 500.0
"""Commands a second."""


class Unjudged(Judged):
    """Gives the commands, and finds fault with nothing."""

    def broken(self, command: Command, outcome: Outcome) -> Divergence | None:
        return None


def turn(target: str, judging: type[Judged], commands: int, first: int) -> tuple[int, float]:
    """Walks until so many commands were given, from this seed on: how many it were, and processor seconds."""
    target_class = load(target)
    contracts = target_class.turns(Contract(target_class.disciplines[0]))
    modes = cycle([opener(target, "", Machine(contract, SCOPES["serving"])) for contract in contracts])
    given, seed, started = 0, first, time.process_time()
    while given < commands:
        given += len(walk(next(modes), seed, judging=judging).commands)
        seed += 1
    return given, time.process_time() - started


def main() -> None:
    commands = int(sys.argv[1]) if len(sys.argv) > 1 else 1_500
    missed = False
    for target in TARGETS:
        contestants = (Judged, Unjudged)
        for judging in contestants:
            turn(target, judging, 200, 0)
        given, seconds = dict.fromkeys(contestants, 0), dict.fromkeys(contestants, 0.0)
        for number in range(TURNS):
            for judging in contestants:
                more, spent = turn(target, judging, commands, 1_000 * number)
                given[judging] += more
                seconds[judging] += spent
        judged, bare = (given[contestant] / seconds[contestant] for contestant in contestants)
        print(f"{target}: {judged:,.0f} commands a second judged, {bare:,.0f} not judged: {bare / judged:.2f} times")
        missed = missed or bare / judged > CEILING or judged < FLOOR
    sys.exit(int(missed))


if __name__ == "__main__":
    main()
