"""Looks for bugs of the bank with a plain stateful test and with a random walk, and keeps what came of it.

python -m tests.bugs.compare [ID ...]                 five seeds each: default settings of Hypothesis, and a random walk
python -m tests.bugs.compare --examples 2000 ID ...   with that many examples, and walks, for a seed
                                 --until-met          no further seed once one has met it: is it missed on every seed?
python -m tests.bugs.compare --sound                  the sound kvoffload, which must pass; nothing is kept
python -m tests.bugs.compare --readme                 write README.md anew from what is kept

A line says in how many of the seeds the bug was met, and how many seconds of processor time all of them took. It is
added to results.json, in place of an older one of the same bug and the same way of looking.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.bugs.bank import BANK, BY_ID
from tests.bugs.compare import results
from tests.bugs.compare.results import DEFAULT_EXAMPLES, SEEDS, Compared, walks_beside
from tests.bugs.compare.serving import COMMANDS, Serving
from tests.bugs.compare.stateful import PlainMachine
from tests.bugs.interpreter import answer_of

LENGTH = 50
"""Commands of one random walk, and of one example at most, which is Hypothesis's default (count)."""
LIMIT = 7200.0
"""Seconds after which a bug is given up: a mutant may go round in circles."""
SOUND = "sound"


def met(run: Callable[[], None]) -> bool:
    """Whatever is raised is a find, as it is for a test runner."""
    try:
        run()
    except Exception:  # noqa: BLE001  whatever it is, a test runner would call it a failure
        return True
    return False


def by_hypothesis(number: int, examples: int) -> bool:
    """Without shrinking, which would cost time and find nothing new."""
    found = settings(
        max_examples=examples,
        stateful_step_count=LENGTH,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
        print_blob=False,
    )
    return met(lambda: run_state_machine_as_test(seed(number)(PlainMachine), settings=found))


def by_walk(number: int, walks: int) -> bool:
    """Commands and arguments with equal chances."""
    chance = random.Random(number)

    def walk() -> None:
        for _ in range(walks):
            serving = Serving(lambda options: chance.choice(list(options)))
            for _ in range(LENGTH):
                getattr(serving, chance.choice(COMMANDS))()
                serving.go_on()
                serving.check()
            serving.drain()

    return met(walk)


def measured(name: str, examples: int, until_met: bool) -> list[Compared]:
    """In the interpreter that has the bug: both ways of looking, with every seed, or until one has met it."""
    walks = walks_beside(examples)
    ways: dict[tuple[str, int], Callable[[int], bool]] = {
        ("walk", walks): lambda number: by_walk(number, walks),
        ("hypothesis", examples): lambda number: by_hypothesis(number, examples),
    }
    found: list[Compared] = []
    for (way, runs), look in ways.items():
        started = time.process_time()
        times = seeds = 0
        while seeds < SEEDS and not (until_met and times):
            times += look(seeds)
            seeds += 1
        seconds = round(time.process_time() - started, 2)
        found.append(Compared(name, way, runs, times, seeds, seconds, results.today()))
    return found


def compared(name: str, examples: int, until_met: bool = False) -> list[Compared]:
    """What `measured` says of one bug, or of the sound kvoffload, in an interpreter of its own. TimeoutError."""
    call = f"[one._asdict() for one in measured({name!r}, {examples}, {until_met})]"
    bug = None if name == SOUND else BY_ID[name]
    answer = answer_of(bug, "tests.bugs.compare.__main__", call, LIMIT)
    return [Compared(**one) for one in answer]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bugs.compare", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--examples", type=int, default=DEFAULT_EXAMPLES)
    parser.add_argument("--until-met", action="store_true", help="no further seed once one has met it")
    parser.add_argument("--sound", action="store_true", help="the sound kvoffload instead of bugs")
    parser.add_argument("--readme", action="store_true", help="only write README.md from what is kept")
    asked = parser.parse_args(arguments)
    unknown = set(asked.ids) - BY_ID.keys()
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank")
    if asked.readme:
        results.write_readme()
        return 0
    passed = True
    for name in [SOUND] if asked.sound else asked.ids or [bug.id for bug in BANK]:
        try:
            found = compared(name, asked.examples, asked.until_met)
        except TimeoutError as error:
            print(f"{name:34} {error}", flush=True)
            continue
        print(f"{name:34} {'   '.join(map(str, found))}", flush=True)
        if asked.sound:
            passed = not any(one.met for one in found)
        else:
            results.keep(found)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
