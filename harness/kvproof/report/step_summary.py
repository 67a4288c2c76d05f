"""The summary of a GitHub step: the screen and its failures, as Markdown, where GITHUB_STEP_SUMMARY names a file."""

import os
import re
from collections.abc import Sequence

VARIABLE = "GITHUB_STEP_SUMMARY"

LARGEST = 200_000
"""Characters that are written at most: GitHub drops a summary of more than a megabyte as a whole."""


def add_to_step_summary(screen: str, failures: Sequence[str]) -> None:
    """Append the screen and the failures to the step's summary. Without such a file nothing happens; OSError."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    blocks = [_fenced(text) for text in (screen, *failures)]
    text = "### kvproof\n\n" + "\n\n".join(blocks) + "\n"
    if len(text) > LARGEST:
        text = text[:LARGEST].rsplit("\n\n", 1)[0] + "\n\nThere is more: see the log.\n"
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def _fenced(text: str) -> str:
    """The text as a block, in a fence longer than any that it holds."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
