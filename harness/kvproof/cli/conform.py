"""`kvproof conform`: machine and target together."""

from collections.abc import Sequence

from kvproof.cli.flags import Parser, add_patience, add_selection, selection
from kvproof.cli.planned import run_planned


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "conform",
        "Search pairs of machine state and target state: every command edge of a scope on the ledger device, and gated "
        "walks with real bytes on the host device, and on cuda where there is one.",
    )
    add_selection(parser)
    add_patience(parser)
    parsed = parser.read(arguments)
    return run_planned(selection(parsed, ("conform",)), parsed)
