"""The command blocks of a page: what is to be typed, and what the page says that it prints."""

import re
from pathlib import Path
from typing import NamedTuple

NOT_RUN = "Not run in CI: "
"""A paragraph that begins so, just before a block, says why its commands are not executed."""

CONSOLE = ("console",)
SCRIPTS = ("sh", "bash")
COMMANDS = CONSOLE + SCRIPTS


class Block(NamedTuple):
    """One fenced block. line: of its fence, from 1; reason: why it is not run, empty: it is."""

    kind: str
    lines: tuple[str, ...]
    line: int
    reason: str


class Typed(NamedTuple):
    """One command of a console block, and the lines that follow it on the page."""

    command: str
    printed: tuple[str, ...]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order. Raises ValueError for a fence that is not closed."""
    found: list[Block] = []
    paragraph: list[str] = []
    last = ""
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        fence = re.fullmatch(r"( *)```([a-z]*).*", line)
        if fence is None:
            if line.strip():
                paragraph.append(line.strip())
            elif paragraph:
                last, paragraph = " ".join(paragraph), []
            continue
        indent = len(fence[1])
        inside: list[str] = []
        for _, content in lines:
            if content.strip() == "```":
                break
            inside.append(content[indent:])
        else:
            raise ValueError(f"the block of line {number} is not closed")
        before = " ".join(paragraph) or last
        reason = before.removeprefix(NOT_RUN) if before.startswith(NOT_RUN) else ""
        found.append(Block(fence[2], tuple(inside), number, reason))
        paragraph, last = [], ""
    return found


def typed(block: Block) -> list[Typed]:
    """The commands of a block: each line after `$ ` with what follows it; of a script, all of it."""
    if block.kind in SCRIPTS:
        return [Typed("\n".join(block.lines), ())]
    commands: list[tuple[str, list[str]]] = []
    for line in block.lines:
        if line.startswith("$ "):
            commands.append((line.removeprefix("$ "), []))
        elif not commands:
            raise ValueError(f"the block of line {block.line} prints before anything is typed")
        else:
            commands[-1][1].append(line)
    return [Typed(command, tuple(printed)) for command, printed in commands]


def pages(root: Path) -> list[Path]:
    """Every page of the documentation, and every other that shows commands: the README, what contributors read."""
    beside = [root / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    folders = (root / "docs", root / "bench", root / "tests")
    return [*beside, *(page for folder in folders for page in sorted(folder.rglob("*.md")))]
