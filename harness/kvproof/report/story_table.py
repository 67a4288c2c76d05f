"""A story in the terminal: what each command did, what it changed, and where contract and target part."""

import textwrap
from collections.abc import Iterator

from kvproof.report.story import Cell, Lane, Story, changes, disputed

NARROWEST = 24
"""Below so many columns, lines are wrapped as if there were so many."""


def story_table(story: Story, width: int, wanted: frozenset[str] = frozenset()) -> str:
    """The story as text, without a line break at its end.

    width   of the terminal, in characters
    wanted  names of lanes: only steps that change one of them are shown, and only those changes; empty: everything
    """
    width = max(width, NARROWEST)
    indent = " " * (len(str(len(story.steps))) + 5)
    return "\n".join(part for line in _lines(story, width, wanted) for part in _fitting(line, indent, width))


def _fitting(line: str, indent: str, width: int) -> list[str]:
    """A line on as many as hold it."""
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def _lines(story: Story, width: int, wanted: frozenset[str]) -> Iterator[str]:
    yield story.title
    digits = len(str(len(story.steps)))
    before = story.start
    hidden = 0
    for number, step in enumerate(story.steps, start=1):
        last = story.property is not None and number == len(story.steps)
        changed = [change for change in changes(before, step.picture) if not wanted or change[0] in wanted]
        before = step.picture
        if wanted and not changed and not last:
            hidden += 1
            continue
        if hidden:
            yield f"  ... {hidden:,} that change nothing of it"
            hidden = 0
        yield f"{'>' if last else ' '} {number:>{digits}} {step.command}" + (f"   {step.note}" if step.note else "")
        indent = " " * (digits + 5)
        if last:
            yield from _parting(story, indent, width)
        else:
            said = [f"{lane}: {old or 'nothing'} -> {new or 'gone'}" for lane, old, new in changed]
            yield from _wrapped(said, indent, width)
    if hidden:
        yield f"  ... {hidden:,} that change nothing of it"
    if story.property is not None:
        yield from textwrap.wrap(_contradiction(story), width, break_on_hyphens=False)


def _wrapped(parts: list[str], indent: str, width: int) -> Iterator[str]:
    """Parts on as few lines as hold them, none of them broken."""
    line = ""
    for part in parts:
        if line and len(indent) + len(line) + 3 + len(part) > width:
            yield indent + line
            line = ""
        line = f"{line}   {part}" if line else part
    if line:
        yield indent + line


def _parting(story: Story, indent: str, width: int) -> Iterator[str]:
    """What differs, each thing marked, contract above target."""
    lanes = disputed(story)
    if story.contract is None or story.target is None or not lanes:
        for contract, target in story.facts:
            yield f"{indent}  contract  {contract}"
            yield f"{indent}! target    {target}"
        return
    missing = Cell("nothing", "", "nothing")
    for lane in lanes:
        yield f"{indent}  contract  {story.contract.get(lane, missing).detail}"
        yield f"{indent}! target    {story.target.get(lane, missing).detail}"


def _contradiction(story: Story) -> str:
    """The last paragraph: the two facts that cannot both be true, and why one of them must hold."""
    words = f"{story.property}: {story.sentence}"
    if story.facts:
        contract, target = (fact.strip() for fact in story.facts[0])
        words += f" Two facts contradict each other: after these commands the contract has {contract!r}"
        words += f", and the target has {target!r}."
    return f"{words} {story.reasons}".rstrip()


def lanes_named(story: Story, words: list[str]) -> frozenset[str]:
    """The lanes that these words name, by name or by the beginning of it (`w0`); ValueError names one that is none."""
    found: set[str] = set()
    for word in words:
        matches = {lane.name for lane in story.lanes if _is_named(lane, word)}
        if not matches:
            raise ValueError(word)
        found |= matches
    return frozenset(found)


def _is_named(lane: Lane, word: str) -> bool:
    return lane.name == word or (lane.group == "stream" and lane.name.partition(" ")[0] == word)
