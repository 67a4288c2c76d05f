"""A story: one trace told step by step, as plain data that tables, timelines and diagrams are drawn from."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple

GROUPS = ("request", "device block", "host block", "job", "stream")
"""What lanes are about, in the order in which they are drawn."""


class Lane(NamedTuple):
    """One thing that is followed through the story: a request, a block, a job, or a stream of a worker.

    name   as reports call it: x, d0, h0, job 0, w0 store
    group  one of GROUPS
    """

    name: str
    group: str


class Cell(NamedTuple):
    """How one thing stands after one step.

    text    a few words; detail: all that is known, in one line
    kind    one word for drawing: how it is coloured
    """

    text: str
    kind: str
    detail: str


Picture = Mapping[str, Cell]
"""How everything stands: a cell for each lane, by name. What does not exist has none."""


class Step(NamedTuple):
    """One command: in the words of a report, what it led to, and how everything stands after it."""

    command: str
    note: str
    picture: Picture


class Story(NamedTuple):
    """A trace, told.

    title     one line: what was run
    lanes     everything that is followed, in the order in which it is drawn
    start     before the first command
    steps     one for each command that was performed
    property  that is broken at the last step, or None; sentence: what happened there, in the field's words
    facts     pairs of lines that differ there: what the contract says, what the target has
    reasons   the rule, where it comes from, and what may come of it
    contract  how everything should stand after the last step, and `target`: how it does; None where they agree, or
              where nothing can be compared, as after a crash
    """

    title: str
    lanes: tuple[Lane, ...]
    start: Picture
    steps: tuple[Step, ...]
    property: str | None = None
    sentence: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    reasons: str = ""
    contract: Picture | None = None
    target: Picture | None = None


def changes(before: Picture, after: Picture) -> tuple[tuple[str, str, str], ...]:
    """What a step changed: (lane, words before, words after), in the order of the pictures. What is not there: empty.

    The words are a cell's text; where that stays the same, what of its detail does not.
    """
    nothing = Cell("", "", "")
    names = dict.fromkeys((*before, *after))
    pairs = ((name, before.get(name, nothing), after.get(name, nothing)) for name in names)
    return tuple((name, *_parting_words(name, old, new)) for name, old, new in pairs if old != new)


def _parting_words(name: str, old: Cell, new: Cell) -> tuple[str, str]:
    if old.text != new.text:
        return old.text, new.text
    clauses = zip_longest(*(cell.detail.removeprefix(f"{name}: ").split("; ") for cell in (old, new)), fillvalue="")
    differing = [pair for pair in clauses if pair[0] != pair[1]]
    return "; ".join(was for was, _ in differing), "; ".join(now for _, now in differing)


def disputed(story: Story) -> tuple[str, ...]:
    """The lanes in which contract and target part, in drawing order."""
    if story.contract is None or story.target is None:
        return ()
    return tuple(lane.name for lane in story.lanes if story.contract.get(lane.name) != story.target.get(lane.name))


def narrowed(story: Story) -> Story:
    """The story without what it has no lanes for."""
    names = [lane.name for lane in story.lanes]

    def narrow(picture: Picture) -> Picture:
        return {name: picture[name] for name in names if name in picture}

    return story._replace(
        start=narrow(story.start),
        steps=tuple(step._replace(picture=narrow(step.picture)) for step in story.steps),
        contract=None if story.contract is None else narrow(story.contract),
        target=None if story.target is None else narrow(story.target),
    )
