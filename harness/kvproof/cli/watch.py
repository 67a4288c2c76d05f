"""`kvproof watch`: does the contract explain what an engine logs, while it runs?"""

from collections.abc import Sequence

from kvproof.cli import validate


def run(arguments: Sequence[str]) -> int:
    return validate.judged(
        "watch",
        "Follow a log that is still written, line by line, as validate does: until the log says that it ends, a line "
        "that the contract does not explain, or Ctrl-C.",
        arguments,
        follow=True,
    )
