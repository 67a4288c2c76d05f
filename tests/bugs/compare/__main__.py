"""Looks for bugs of the bank with a plain stateful test and with a random walk, and keeps what came of it.

python -m tests.bugs.compare [ID ...]                 five seeds each: default settings of Hypothesis, and a random walk
                                 without IDs: all bugs but those of what the plain test does not have
python -m tests.bugs.compare --examples 2000 ID ...   with that many examples, and walks, for a seed
                                 --missed             the bugs that default settings met with no seed, cheap ones first
                                 --seeds 1            fewer seeds
                                 --until-met          no further seed once one has met it: is it missed on every seed?
                                 --way hypothesis     without the walk, or with --way walk that alone
                                 --again              anew; else seeds that are in results.json are not tried again
python -m tests.bugs.compare --sound                  the sound kvoffload, which must pass; nothing is kept
python -m tests.bugs.compare --readme                 write README.md anew from what is kept

A line says in how many of the seeds the bug was met, and how many seconds of processor time all of them took. It is
kept in results.json as it is found, and a later call goes on from there with the next seed.
"""

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

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
"""Elapsed seconds after which an interpreter that does not answer is given up."""
SOUND = "sound"


def patience(runs: int) -> float:
    """Seconds of processor time for one seed: more than three times of what the sound kvoffload takes."""
    return 10 + 0.1 * runs


def met(run: Callable[[], None], limit: float) -> bool:
    """Whatever is raised is a find, as it is for a test runner; so is a command that goes round in circles."""
    signal.signal(signal.SIGPROF, _out_of_patience)
    # Hypothesis runs what has failed once more: the alarm comes again there
    signal.setitimer(signal.ITIMER_PROF, limit, limit / 4)
    try:
        run()
    except Exception:  # noqa: BLE001  whatever it is, a test runner would call it a failure
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return False


def _out_of_patience(_: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"it goes round in circles, {frame and frame.f_code.co_qualname}")


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
    return met(lambda: run_state_machine_as_test(seed(number)(PlainMachine), settings=found), patience(examples))


def by_walk(number: int, walks: int) -> bool:
    """Commands and arguments with equal chances."""
    chance = random.Random(number)

    def walk() -> None:
        for _ in range(walks):
            serving = Serving(lambda options: chance.choice(list(options)))
            for _ in range(LENGTH):
                getattr(serving, chance.choice([one for one in COMMANDS if serving.can(one)]))()
                serving.go_on()
                serving.check()
            serving.drain()

    return met(walk, patience(walks))


LOOK: dict[str, Callable[[int, int], bool]] = {"walk": by_walk, "hypothesis": by_hypothesis}


def measured(line: Compared, seeds: int, until_met: bool) -> Compared:
    """In the interpreter that has the bug: a line with what further seeds have made of it."""
    look = LOOK[line.way]
    started = time.process_time()
    times, tried = line.met, line.seeds
    while tried < seeds and not (until_met and times):
        times += look(tried, line.runs)
        tried += 1
    seconds = round(line.seconds + time.process_time() - started, 2)
    return line._replace(met=times, seeds=tried, seconds=seconds, date=results.today())


def compared(lines: Sequence[Compared], seeds: int, until_met: bool = False) -> list[Compared]:
    """What `measured` makes of lines of one bug, or of the sound one, in an interpreter of its own. TimeoutError."""
    plain = [tuple(line) for line in lines]
    call = f"[measured(Compared(*one), {seeds}, {until_met})._asdict() for one in {plain!r}]"
    bug = None if lines[0].id == SOUND else BY_ID[lines[0].id]
    return [Compared(**one) for one in answer_of(bug, "tests.bugs.compare.__main__", call, LIMIT)]


def going_on(lines: list[Compared], seeds: int, until_met: bool) -> Iterator[list[Compared]]:
    """Lines of one bug, again and again as they get longer: all seeds at once with few examples, else one by one."""
    at_once = all(line.runs <= walks_beside(DEFAULT_EXAMPLES) for line in lines)
    while left := [line for line in lines if line.seeds < seeds and not (until_met and line.met)]:
        until = seeds if at_once else min(line.seeds for line in left) + 1
        by_way = {line.way: line for line in compared(left, until, until_met)}
        lines = [by_way.get(line.way, line) for line in lines]
        yield lines


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bugs.compare", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--missed", action="store_true", help="what default settings met with no seed")
    parser.add_argument("--examples", type=int, default=DEFAULT_EXAMPLES)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many; {SEEDS} unless given")
    parser.add_argument("--way", choices=sorted(LOOK), help="one of the two alone")
    parser.add_argument("--again", action="store_true", help="anew, and not on from what is kept")
    parser.add_argument("--until-met", action="store_true", help="no further seed once one has met it")
    parser.add_argument("--sound", action="store_true", help="the sound kvoffload instead of bugs")
    parser.add_argument("--readme", action="store_true", help="only write README.md from what is kept")
    asked = parser.parse_args(arguments)
    unknown = set(asked.ids) - BY_ID.keys()
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank")
    if blind := [name for name in asked.ids if not results.can_be_met(BY_ID[name])]:
        parser.error(f"{blind[0]} is of a second host tier, dying workers or bytes, which the plain test has not")
    if asked.readme:
        results.write_readme()
        return 0
    begun = {} if asked.again or asked.sound else results.by_what()
    passed = True
    ids = asked.ids or (results.missed() if asked.missed else [bug.id for bug in BANK if results.can_be_met(bug)])
    for name in [SOUND] if asked.sound else ids:
        ways = (("walk", walks_beside(asked.examples)), ("hypothesis", asked.examples))
        lines = [
            begun.get((name, way, runs), Compared(name, way, runs, 0, 0, 0.0, ""))
            for way, runs in ways
            if asked.way in (None, way)
        ]
        try:
            for found in going_on(lines, asked.seeds, asked.until_met):
                print(f"{name:34} {'   '.join(map(str, found))}", flush=True)
                if asked.sound:
                    passed = not any(one.met for one in found)
                else:
                    results.keep(found)
        except TimeoutError as error:
            print(f"{name:34} {error}", flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
