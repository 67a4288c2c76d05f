"""The engines that sample, and the suite, on every bug of kvoffload: which of them they kill, for the night.

python -m tests.bugs.night [--engine ENGINE] [ID ...]   what kills.json does not have yet
                           --again                      all of it anew

`fuzz` takes 3,000 commands on `ledger`, and `soak` is as long as in `kvproof check`. `suite` is kvoffload's own
tests (tests/impl) and the cases of the seeds (tests/seeds) until one fails; what the tests of another device need is
left out. `prove` is asked of the specification, with bugs of its own in it (tests/proofs/bugs.py): it knows no
kvoffload. Each kill is kept as it is found, and what is kept is not done again: a night that is cut short is gone on
with in the next one.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvmodel.contract import Discipline
from kvproof import plan
from kvproof.job import load_engine
from tests.bugs import kept
from tests.bugs.bank import BY_ID
from tests.bugs.bug import Bug
from tests.bugs.interpreter import answer_of, require_planted
from tests.bugs.matrix import Kill
from tests.bugs.planting import ROOT, plant
from tests.proofs.bugs import failed_parametrically, named_failures

LIMIT = 900.0
"""Seconds after which one engine gives one bug up: it has named nothing, and has not killed it."""

FUZZED = 3_000
"""Commands of fuzzing."""

AMOUNTS = {"fuzz": f"{FUZZED:,} commands", "soak": "as in kvproof check"}

SUITE = ("tests/impl", "tests/seeds")
NOT_ASKED = ("tests/impl/test_libcuda.py", "tests/impl/test_gpu_suite.py", "tests/seeds/test_gpu_cases.py")


def sampled(engine: str, discipline: Discipline) -> dict[str, Any]:
    """In the interpreter that has the bug: the jobs that `kvproof check` has for this engine, until one is refuted; of
    fuzz with commands of its own number."""
    require_planted()
    started = time.process_time()
    device = "ledger" if engine == "fuzz" else "host"
    selection = plan.Selection(engines=(engine,), disciplines=(discipline,), device=device)
    found = {"property": "", "commands": 0}
    for job in plan.build(selection).jobs:
        if engine == "fuzz":
            job = replace(job, options={**job.options, "commands": FUZZED})
        failure = load_engine(engine)(job, lambda _: None, lambda: False).failure
        if failure is not None:
            found = {"property": failure.property, "commands": len(failure.commands) if engine == "fuzz" else 0}
            break
    return {**found, "seconds": time.process_time() - started}


def by_sampling(bug: Bug, engine: str) -> Kill:
    try:
        found = answer_of(bug, "tests.bugs.night", f"sampled({engine!r}, {bug.discipline!r})", LIMIT)
    except TimeoutError:
        found = {"property": "", "commands": 0, "seconds": LIMIT}
    return Kill(
        bug.id,
        bug.kind,
        engine,
        f"{bug.discipline}, {AMOUNTS[engine]}",
        bool(found["property"]),
        found["property"],
        found["commands"],
        0,
        found["seconds"],
    )


def by_suite(bug: Bug, engine: str) -> Kill:
    """The first test that fails takes the place of a property."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    failed = _failed_of_suite(bug)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Kill(bug.id, bug.kind, engine, " ".join(SUITE), bool(failed), failed, 0, 0, seconds)


def _failed_of_suite(bug: Bug) -> str:
    """The first test that fails with the bug; empty: none does, or it is given up. RuntimeError: it did not run."""
    with tempfile.TemporaryDirectory() as folder:
        plant(bug, Path(folder))
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        ignored = [f"--ignore={path}" for path in NOT_ASKED]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *ignored, *SUITE],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return ""
    if failed is None:
        raise RuntimeError(f"the suite did not run with {bug.id}:\n{done.stdout}{done.stderr}")
    return failed[1].partition("[")[0]


ENGINES: Mapping[str, Callable[[Bug, str], Kill]] = {"fuzz": by_sampling, "soak": by_sampling, "suite": by_suite}
"""What a bug of kvoffload is given to, beside the exhaustive engines: those of `kept.SAMPLING`."""
PROVE = "prove"


def by_proof(name: str) -> Kill:
    """A wrong line of the specification is killed if just the obligation fails that is named for it."""
    bug, discipline = named_failures()[name]
    started = time.process_time()
    failed = failed_parametrically(bug, discipline)
    seconds = time.process_time() - started
    where, names = f"{discipline} {bug.action}, all sizes", ", ".join(sorted(failed))
    return Kill(name, "specification", PROVE, where, failed == {bug.fails}, names, 0, 0, seconds)


def left(engine: str, ids: Sequence[str], known: kept.Known) -> list[str]:
    """What an engine is still to be given: of these bugs, or of all that are meant for it if there are none."""
    slot = engine if engine in kept.SAMPLING else kept.EXHAUSTIVE
    meant = named_failures() if engine == PROVE else BY_ID
    return [name for name in meant if (not ids or name in ids) and (name, slot) not in known]


def found(engines: Sequence[str], ids: Sequence[str], known: kept.Known) -> Iterator[Kill]:
    for engine in engines:
        for name in left(engine, ids, known):
            yield by_proof(name) if engine == PROVE else ENGINES[engine](BY_ID[name], engine)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bugs.night", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--engine", choices=(PROVE, *ENGINES), action="append", help="this one, and not all")
    parser.add_argument("--again", action="store_true", help="also what is kept from before")
    asked = parser.parse_args(arguments)
    unknown = set(asked.ids) - BY_ID.keys() - named_failures().keys()
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r} in the bank")
    known = {} if asked.again else kept.read()
    for kill in found(asked.engine or (PROVE, *ENGINES), asked.ids, known):
        print(f"{kill.engine:6} {kill.id:31} {kill.seconds:7.2f} s  {kill.property or 'no'}", flush=True)
        kept.keep([kill])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
