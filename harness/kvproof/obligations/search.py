"""Every sequence of commands up to a length, shortest first: what is found first is the shortest there is.

An engine cannot be set back: each sequence is given to a fresh one. What keeps the number down is that no state is
gone on from twice, where two states are the same only if all that the engine holds is, and that operations of different
workers, which have nothing in common, are run in one order. A drain ends a sequence.
"""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, Protocol, cast, runtime_checkable

from kvproof.obligations.judge import Judged
from kvproof.obligations.watched import Watched
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed
from kvproof.targets.guarded import started
from kvproof.targets.outcome import Crashed
from kvproof.targets.target import Target

Commands = tuple[Command, ...]


@runtime_checkable
class Digesting(Protocol):
    """A watched target that can tell states apart."""

    def digest(self) -> bytes:
        """The same only if everything that decides what the engine will do is the same. That two states which are the
        same in this sense have different digests costs time, and nothing else."""
        ...


class Searched(NamedTuple):
    """What a search has seen.

    length   every sequence of up to so many commands was given (count)
    states   distinct ones that were gone on from; sequences: given to an engine (counts)
    commands, divergence   the shortest sequence that breaks something, and what
    passed   violations that were gone on past, by the key that `known` takes, with the shortest sequence of each
    """

    length: int
    states: int
    sequences: int
    commands: Commands
    divergence: Divergence | None
    passed: dict[str, Commands]


class Searching:
    """One search. known: says of a divergence whether to go on past it, and under which key.

    sequences  given so far; performed: commands of all of these, those of drains one by one (counts)
    """

    def __init__(self, open_target: Callable[[], Target], known: Callable[[Divergence], str]) -> None:
        self.open_target = open_target
        self.known = known
        self.seen: set[bytes] = set()
        self.sequences = 0
        self.performed = 0
        self.passed: dict[str, Commands] = {}

    def run(self, longest: int, cut: Callable[[], bool], progress: Callable[[str], None]) -> Searched:
        """All sequences of up to `longest` commands, until one breaks something, or until `cut`."""
        frontier: list[tuple[Commands, Collection[Command]]] = []
        divergence = self._tried((), frontier)
        if divergence is not None:
            return self._searched(0, (), divergence)
        for length in range(1, longest + 1):
            ahead: list[tuple[Commands, Collection[Command]]] = []
            for commands, following in frontier:
                for command in following:
                    if cut():
                        return self._searched(length - 1, (), None)
                    divergence = self._tried((*commands, command), ahead)
                    if divergence is not None:
                        return self._searched(length, (*commands, command), divergence)
                progress(f"{length} commands: {self.sequences:,} sequences, {len(self.seen):,} states")
            frontier = ahead
        return self._searched(longest, (), None)

    def _searched(self, length: int, commands: Commands, divergence: Divergence | None) -> Searched:
        return Searched(length, len(self.seen), self.sequences, commands, divergence, self.passed)

    def _tried(self, commands: Commands, ahead: list[tuple[Commands, Collection[Command]]]) -> Divergence | None:
        """Give a sequence to a fresh engine. Its last command alone is new, and where it leads is gone on from if it
        was not seen before."""
        self.sequences += 1
        target = started(self.open_target)
        if isinstance(target, Crashed):
            return crashed(None, target)
        judged = Judged(cast(Watched, target))
        try:
            for command in commands:
                _, divergence = judged.perform(command)
                if divergence is not None:
                    key = self.known(divergence)
                    if not key:
                        return divergence
                    self.passed.setdefault(key, commands)
                    return None
            if commands and commands[-1].verb == "drain":
                return None
            digest = cast(Digesting, target).digest()
            if digest not in self.seen:
                self.seen.add(digest)
                ahead.append((commands, tuple(_following(judged.target, commands))))
        finally:
            self.performed += judged.performed
            target.close()
        return None


def _following(target: Watched, commands: Commands) -> Iterator[Command]:
    last = commands[-1] if commands else None
    for command in target.enabled():
        if last is not None and last.verb == command.verb == "run" and command.args[0] < last.args[0]:  # type: ignore[operator]
            continue
        yield command
    yield Command("drain")
