"""`kvproof explore`: the reference machine alone."""

from collections.abc import Sequence

from kvproof.cli.flags import Parser, add_selection, selection
from kvproof.cli.planned import run_planned
from kvproof.targets.registry import is_ours
from kvproof.usage import BadUsage


def run(arguments: Sequence[str]) -> int:
    parser = Parser("explore", "Search the reference machine exhaustively: every safety property, and liveness.")
    add_selection(parser)
    parsed = parser.read(arguments)
    if parsed.device != "auto":
        raise BadUsage(
            f"explore searches the machine alone and runs on no device, and --device asks for {parsed.device}"
        )
    if parsed.target is not None and not is_ours(parsed.target):
        raise BadUsage(
            f"explore searches the machine alone, and --target names {parsed.target!r:.100}; use conform, fuzz or check"
        )
    parsed.target = "kvoffload"  # also where [tool.kvproof] names another: the machine is the same for all
    return run_planned(selection(parsed, ("explore",)), parsed)
