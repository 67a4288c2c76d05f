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
    text = "### kvproof\n"
    for shown, block in enumerate((screen, *failures)):
        if len(text) + len(block) > LARGEST:
            text += f"\n{len(failures) + 1 - shown} more do not fit here: see the log.\n"
            break
        text += f"\n{_fenced(block)}\n"
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def _fenced(text: str) -> str:
    """The text as a block, in a fence longer than any that it holds."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
