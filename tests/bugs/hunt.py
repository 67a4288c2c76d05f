"""Looks for a planted bug with the engines of kvproof, in an interpreter of its own whose kvoffload has the bug in it.

hunt(bug, ...)    plants the bug, and answers what has been found there; hunted(...) is what the interpreter does
replay_with(bug)  what comes of the bug's stored trace there; replayed(...) is what the interpreter does
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kvmodel import Machine
from kvmodel.contract import Discipline
from kvproof.engines import conform
from kvproof.engines.run_of import RunOf, run_of
from kvproof.job import Job
from kvproof.search.modes import Variant
from kvproof.search.product import Product
from kvproof.targets.command import Command
from kvproof.targets.registry import load
from kvproof.targets.target import opened
from kvproof.trace import itf
from tests.bugs.bug import Bug, Engine, variant_of
from tests.bugs.interpreter import answer_of, require_planted
from tests.bugs.traces import DEVICES, trace_file

LIMIT = 120.0
"""Seconds after which a hunt is given up: a mutant may well go round in circles."""


class Caught(NamedTuple):
    """What an engine has found. property: that is broken; empty: nothing was found, and `sentence` says what was done.

    commands  up to the violation; states: pairs of the product search, or states that walks had to cover (count)
    seconds   of processor time, of the search alone
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


def searched(variant: Variant, target_class: type, limit: float = LIMIT) -> Caught:
    """The product search, composites on, of a target whose state can be copied out."""
    machine = Machine(variant.contract, variant.scope)
    started = time.process_time()
    target = opened(target_class, machine.setting)
    found = Product(machine, target, composites=True).search(  # type: ignore[arg-type]
        lambda: time.process_time() - started > limit, lambda _: None
    )
    seconds = time.process_time() - started
    if found.divergence is None:
        done = "everything" if found.finished else "cut short"
        return Caught("", f"{done}: {found.pairs} pairs, {found.edges} edges", (), found.pairs, seconds)
    return Caught(found.divergence.property, found.divergence.sentence, found.commands, found.pairs, seconds)


def walked(variant: Variant) -> Caught:
    """On real bytes: walks that take every transition, where the way to a violation is shrunk."""
    job = Job(
        engine="conform",
        target="kvoffload",
        discipline=variant.contract.discipline,
        scope_name=variant.name,
        scope=variant.scope,
        contract=variant.contract,
        device="host",
    )
    started = time.process_time()
    result = conform.run(job, lambda _: None, lambda: time.process_time() - started > LIMIT)
    failure, seconds = result.failure, time.process_time() - started
    if failure is None:
        return Caught("", f"{result.verdict}: {result.detail}", (), result.states or 0, seconds)
    return Caught(failure.property, failure.sentence, failure.commands, result.states or 0, seconds)


def replay(variant: Variant, target_class: type, commands: Sequence[Command]) -> RunOf:
    """The commands once more, on a fresh target."""
    machine = Machine(variant.contract, variant.scope)
    return run_of(machine, lambda: opened(target_class, machine.setting), commands, lambda: False)


def hunt(bug: Bug, engine: Engine, variant: str) -> Caught:
    """Plant the bug and look for it there."""
    call = f"hunted({bug.discipline!r}, {variant!r}, {engine!r})"
    try:
        caught = answer_of(bug, "tests.bugs.hunt", call, LIMIT)
    except TimeoutError as error:
        return Caught("", str(error), (), 0, LIMIT)
    commands = tuple([Command(verb, tuple(arguments)) for verb, arguments in caught["commands"]])
    return Caught(**{**caught, "commands": commands})


def hunted(discipline: Discipline, name: str, engine: Engine) -> dict[str, Any]:
    """In the interpreter that has the bug: what is found at this variant."""
    require_planted()
    variant = variant_of(name, discipline)
    if engine == "conform host":
        return walked(variant)._asdict()
    return searched(variant, load("kvoffload", DEVICES[engine]))._asdict()


def replay_with(bug: Bug) -> Replayed:
    """Plant the bug and replay its stored trace there. TimeoutError."""
    return Replayed(*answer_of(bug, "tests.bugs.hunt", f"replayed({str(trace_file(bug))!r})", LIMIT))


def replayed(trace: str) -> Replayed:
    """In the interpreter that has the bug: what comes of a trace."""
    require_planted()
    stored = itf.read(Path(trace))
    variant = Variant(stored.scope_name, stored.scope, stored.contract)
    run = replay(variant, load("kvoffload", stored.device), stored.commands)
    return Replayed("" if run.divergence is None else run.divergence.property, run.done)
