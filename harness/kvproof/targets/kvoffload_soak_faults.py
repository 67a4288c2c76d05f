"""Which copies of a soaked engine fail. Each is drawn by itself from a seed, so that the streams' timing has no say."""

import random
from typing import Final

from kvoffload.operations import Copy, Operation
from kvproof.targets.command import Command

FAILING: Final = 0.15
"""Chance that a job fails on a worker, wholly or in one block."""

WHOLLY: Final = 0.05


class FailingCopies:
    """The copies that fail in one episode: those of one seed, or none."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed

    def of(self, worker: int, job: int, pairs: int) -> tuple[int, ...]:
        """Positions of the pairs that this worker fails to copy, of so many of a job."""
        if self._seed is None:
            return ()
        chance = random.Random(f"{self._seed} {worker} {job}")
        draw = chance.random()
        if draw >= FAILING:
            return ()
        return tuple(range(pairs)) if draw < WHOLLY else (chance.randrange(pairs),)

    def faults(self, worker: int, copy: Copy) -> tuple[int, ...]:
        """The same, as a device asks. Safe on any thread."""
        return self.of(worker, copy.job, len(copy.pairs))

    def run(self, worker: int, operation: Operation) -> Command:
        """The command that runs this operation, and makes it fail where it does."""
        stream = str(operation.stream)
        if not isinstance(operation, Copy) or not (failing := self.faults(worker, operation)):
            return Command("run", (worker, stream))
        if len(failing) == len(operation.pairs):
            return Command("fail_copy", (worker, stream))
        return Command("fail_block", (worker, stream, failing[0]))
