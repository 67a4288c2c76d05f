"""Sharing: several processes take one level of a search together."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from kvproof.search.aside import Aside

Node = TypeVar("Node")
Part = TypeVar("Part")
Ended = TypeVar("Ended")


def shared(
    level: Sequence[Node],
    processes: int,
    take: Callable[[Sequence[Node]], Ended | None],
    take_aside: Callable[[Sequence[Node]], Part],
    take_in: Callable[[Part], Ended | None],
) -> Ended | None:
    """Why the search ends in this level, if it does.

    This process takes the first part, another each of the others, and tells. What they tell is taken in in the order of
    the parts, so that nothing tells afterwards how many they were. None of them is left, whatever is raised.
    """
    size = -(-len(level) // processes)
    here, *others = [level[start : start + size] for start in range(0, len(level), size)]
    asides = deque([Aside(partial(take_aside, part)) for part in others])
    try:
        ended = take(here)
        while asides and ended is None:
            ended = take_in(asides.popleft().answer())
    finally:
        for aside in asides:
            aside.call_off()
    return ended
