"""The search for the first bad of several commits, some of which say nothing."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

Judgement = Literal["good", "bad", "skipped"]
"""What a commit is: `skipped` says nothing, since the trace cannot be judged there."""


class Found(NamedTuple):
    """The commits of which one is the first bad one, in order: mostly one. More are left where all but the last are
    skipped."""

    suspects: tuple[str, ...]


def first_bad(commits: Sequence[str], judge: Callable[[str], Judgement]) -> Found:
    """Search the commits after a good one, oldest first, of which the last is bad. Each is judged at most once."""
    good, bad = -1, len(commits) - 1
    skipped: set[int] = set()
    while True:
        middle = (good + bad) // 2
        open_ones = [index for index in range(good + 1, bad) if index not in skipped]
        if not open_ones:
            return Found(tuple(commits[good + 1 : bad + 1]))
        tried = min(open_ones, key=lambda index: (abs(index - middle), index))
        judgement = judge(commits[tried])
        if judgement == "good":
            good = tried
        elif judgement == "bad":
            bad = tried
        else:
            skipped.add(tried)
