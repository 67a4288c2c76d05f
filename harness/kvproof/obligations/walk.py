"""Random walks: enabled commands, drawn by a seeded generator, given to fresh watched targets."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, cast

from kvproof.obligations.judge import Judged
from kvproof.obligations.watched import Breakable, Watched
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed
from kvproof.targets.guarded import started
from kvproof.targets.outcome import Crashed
from kvproof.targets.target import Target

LENGTH = 60
"""Commands of one walk at most; a drain, a reset and another one come after them."""

WEIGHTS: Mapping[str, int] = {
    "schedule": 8,
    "handle_output": 8,
    "run": 8,
    "submit": 4,
    "abort": 1,
    "reset": 1,
}
"""How often each kind of command is drawn beside the others, where it is possible."""

FAULT_CHANCE = 0.2
"""How often a walk that is to have a fault takes one when it could: so some come early, and some late."""

WITHOUT = ("abort", "reset", "drain")
"""Kinds of which each walk lacks some: what is rare in a mixture is common in a walk that has nothing else."""


class Walk(NamedTuple):
    """The commands of one walk, and what the last of them broke."""

    commands: tuple[Command, ...]
    divergence: Divergence | None


def walk(open_target: Callable[[], Target], seed: int, fault: str = "", judging: type[Judged] = Judged) -> Walk:
    """One walk. The same seed gives the same commands, as long as the engine does the same.

    fault  a verb of what the target's contract with its environment excludes: the walk has one such command, if it can
    judging  who gives the commands and judges what came of them
    """
    drawn = random.Random(seed)
    target = started(open_target)
    if isinstance(target, Crashed):
        return Walk((), crashed(None, target))
    judged, commands = judging(cast(Watched, target)), list[Command]()
    try:
        for command in _commands(judged.target, drawn, fault):
            commands.append(command)
            _, found = judged.perform(command)
            if found is not None:
                return Walk(tuple(commands), found)
    finally:
        target.close()
    return Walk(tuple(commands), None)


def _commands(target: Watched, drawn: random.Random, fault: str) -> Iterator[Command]:
    without = {kind for kind in WITHOUT if drawn.random() < 0.4}
    for _ in range(drawn.randint(LENGTH // 3, LENGTH)):
        faults = [command for command in cast(Breakable, target).faults() if command.verb == fault] if fault else []
        if faults and drawn.random() < FAULT_CHANCE:
            fault = ""
            yield drawn.choice(faults)
            continue
        kinds: dict[str, list[Command]] = {}
        for command in target.enabled():
            if command.verb not in without:
                kinds.setdefault(command.verb, []).append(command)
        if "drain" not in without and "schedule" in kinds and drawn.random() < 0.03:
            yield Command("drain")
            continue
        if not kinds:
            break
        verbs = list(kinds)
        verb = drawn.choices(verbs, [WEIGHTS[verb] for verb in verbs])[0]
        yield drawn.choice(kinds[verb])
    yield Command("drain")
    yield from [command for command in target.enabled() if command.verb == "reset"][:1]
