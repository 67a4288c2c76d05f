"""Make a failing sequence of commands shorter."""

from collections.abc import Callable, Sequence

from kvproof.targets.command import Command

Fails = Callable[[Sequence[Command]], bool]
"""Whether these commands still fail in the same way: with the same fingerprint, at their last command."""


def shrink(commands: Sequence[Command], fails: Fails, cut: Callable[[], bool]) -> tuple[Command, ...]:
    """The shortest sequence that dropping commands leads to: without any single one of its commands it does not fail.

    Large pieces are dropped first, from the end (what comes late seldom causes what comes early), then ever smaller
    ones; the order of what stays is kept. `commands` must fail. Stops early, with what it has, when `cut` says so.
    """
    kept = list(commands)
    piece = max(len(kept) // 2, 1)
    while True:
        dropped = False
        end = len(kept)
        while end > 0:
            if cut():
                return tuple(kept)
            candidate = kept[: max(end - piece, 0)] + kept[end:]
            if fails(candidate):
                kept = candidate
                dropped = True
            end -= piece
            end = min(end, len(kept))
        if piece > 1:
            piece //= 2
        elif not dropped:
            return tuple(kept)
