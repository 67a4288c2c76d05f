"""A target up to its end: what another process has seen of one that ended it, told without ending this one."""

from collections.abc import Callable
from typing import Any

from kvproof.targets.command import Command
from kvproof.targets.outcome import Crashed, Outcome
from kvproof.targets.target import Target


class Ending:
    """A target of which one call crashes as it did elsewhere, without being made."""

    def __init__(self, target: Target, calls: int, crash: Crashed) -> None:
        self._target, self._left, self._crash = target, calls, crash

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def perform(self, command: Command) -> Outcome:
        """What the target answers; of the last call, the crash."""
        self._left -= 1
        return self._target.perform(command) if self._left > 0 else self._crash


def until(open_target: Callable[[], Target], calls: int, crash: Crashed) -> Callable[[], Any]:
    """Opens targets that crash at call number `calls`; 0: while they are opened."""
    return lambda: Ending(open_target(), calls, crash) if calls else crash
