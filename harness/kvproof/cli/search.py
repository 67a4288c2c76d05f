"""`kvproof search`: every sequence of commands up to a length."""

from collections.abc import Sequence

from kvproof.cli.flags import Parser, add_patience, add_selection, add_watched, selection
from kvproof.cli.planned import run_planned
from kvproof.obligations.runs import is_watched
from kvproof.targets.registry import is_ours, load
from kvproof.usage import BadUsage


def run(arguments: Sequence[str]) -> int:
    parser = Parser("search", "Give a target every sequence of commands up to a length: what fails is the shortest.")
    add_selection(parser)
    add_patience(parser)
    add_watched(parser)
    parsed = parser.read(arguments)
    chosen = selection(parsed, ("search",))
    if is_ours(chosen.target) or not is_watched(load(chosen.target)):
        raise BadUsage(
            f"search is for targets that are held to their obligations, and {chosen.target!r:.100} is held to the "
            "machine; use conform"
        )
    return run_planned(chosen, parsed)
