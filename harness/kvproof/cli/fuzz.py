"""`kvproof fuzz`: random commands beyond the exhaustive scopes."""

from collections.abc import Sequence

from kvproof.cli.flags import Parser, add_beyond_contract, add_patience, add_selection, add_watched, selection
from kvproof.cli.planned import run_planned


def run(arguments: Sequence[str]) -> int:
    parser = Parser("fuzz", "Random enabled commands beyond the exhaustive scopes; what fails is shrunk and kept.")
    add_selection(parser)
    add_patience(parser)
    add_watched(parser)
    add_beyond_contract(parser)
    parsed = parser.read(arguments)
    return run_planned(selection(parsed, ("fuzz", *["robustness"] * parsed.beyond_contract)), parsed)
