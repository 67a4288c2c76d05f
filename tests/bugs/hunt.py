"""Looks for a planted bug with the engines of kvproof, in an interpreter of its own whose kvoffload has the bug in it.

hunt(bug, ...)    plants the bug, starts the interpreter, and answers what it has found
python -m tests.bugs.hunt ...    is that interpreter: it prints what it finds as JSON
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kvmodel import Machine
from kvproof.engines import conform, soak
from kvproof.engines.run_of import RunOf, run_of
from kvproof.job import Job
from kvproof.search.modes import Variant
from kvproof.search.product import Product
from kvproof.targets.command import Command
from kvproof.targets.registry import load
from kvproof.targets.target import opened
from kvproof.trace import itf
from tests.bugs.bug import Bug, Engine, variant_of
from tests.bugs.planting import ROOT, plant

LIMIT = 120.0
"""Seconds after which a hunt is given up: a mutant may well go round in circles."""

COPIES = 2_000
"""How many copies a soak makes; `kvproof check` makes more."""


class Caught(NamedTuple):
    """What an engine has found. property: that is broken; empty: nothing was found, and `sentence` says what was done.

    commands  up to the violation; states: pairs of the product search, or states that walks had to cover (count)
    """

    property: str
    sentence: str
    commands: tuple[Command, ...]
    states: int
    seconds: float


class Replayed(NamedTuple):
    """What came of the commands of a trace. property: that is broken at command `done`; empty: none is."""

    property: str
    done: int


class Hunted(NamedTuple):
    caught: Caught
    replayed: Replayed | None


def searched(variant: Variant, target_class: type, limit: float = LIMIT) -> Caught:
    """The product search, composites on, of a target whose state can be copied out."""
    machine = Machine(variant.contract, variant.scope)
    started = time.monotonic()
    target = opened(target_class, machine.setting)
    found = Product(machine, target, composites=True).search(  # type: ignore[arg-type]
        lambda: time.monotonic() - started > limit, lambda _: None
    )
    seconds = time.monotonic() - started
    if found.divergence is None:
        done = "everything" if found.finished else "cut short"
        return Caught("", f"{done}: {found.pairs} pairs, {found.edges} edges", (), found.pairs, seconds)
    return Caught(found.divergence.property, found.divergence.sentence, found.commands, found.pairs, seconds)


def on_host(variant: Variant, engine: Engine) -> Caught:
    """On real bytes: walks that take every transition, where the way to a violation is shrunk; or a soak."""
    job = Job(
        engine=engine.split()[0],
        target="kvoffload",
        discipline=variant.contract.discipline,
        scope_name=variant.name,
        scope=variant.scope,
        contract=variant.contract,
        device="host",
        options={"copies": COPIES},
    )
    run = soak.run if engine == "soak host" else conform.run
    started = time.monotonic()
    result = run(job, lambda _: None, lambda: time.monotonic() - started > LIMIT)
    failure, seconds = result.failure, time.monotonic() - started
    if failure is None:
        return Caught("", f"{result.verdict}: {result.detail}", (), result.states or 0, seconds)
    commands = () if engine == "soak host" else failure.commands
    return Caught(failure.property, failure.sentence, commands, result.states or 0, seconds)


def replay(variant: Variant, target_class: type, commands: Sequence[Command]) -> RunOf:
    """The commands once more, on a fresh target."""
    machine = Machine(variant.contract, variant.scope)
    return run_of(machine, lambda: opened(target_class, machine.setting), commands, lambda: False)


def hunt(bug: Bug, engine: Engine, variant: str, trace: Path | None) -> Hunted:
    """Plant the bug and look for it there; also replay the trace on it, if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        plant(bug, Path(folder))
        arguments = [bug.discipline, variant, engine, *([] if trace is None else [str(trace)])]
        paths = [folder, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.bugs.hunt", *arguments],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            return Hunted(Caught("", f"no answer within {LIMIT:.0f} s", (), 0, LIMIT), None)
    if done.returncode:
        raise RuntimeError(f"the hunt for {bug.id} failed:\n{done.stderr}")
    answer = json.loads(done.stdout)
    caught = Caught(
        **{**answer["caught"], "commands": tuple(Command(v, tuple(a)) for v, a in answer["caught"]["commands"])}
    )
    replayed = None if answer["replayed"] is None else Replayed(*answer["replayed"])
    return Hunted(caught, replayed)


def main(arguments: Sequence[str]) -> None:
    """In the interpreter that has the bug: arguments are discipline, variant, engine, and a trace or nothing."""
    discipline, name, engine, *traces = arguments
    import kvoffload

    if not Path(kvoffload.__file__).is_relative_to(Path.cwd()):
        raise RuntimeError(f"kvoffload is the one in {kvoffload.__file__}, and not the one with the bug")
    variant = variant_of(name, discipline)  # type: ignore[arg-type]
    target_class = load("kvoffload", engine.split()[1])
    caught = searched(variant, target_class) if engine == "conform ledger" else on_host(variant, engine)  # type: ignore[arg-type]
    replayed = None
    if traces:
        trace = itf.read(Path(traces[0]))
        run = replay(Variant(trace.scope_name, trace.scope, trace.contract), target_class, trace.commands)
        replayed = Replayed("" if run.divergence is None else run.divergence.property, run.done)
    print(json.dumps({"caught": caught._asdict(), "replayed": replayed}))


if __name__ == "__main__":
    main(sys.argv[1:])
