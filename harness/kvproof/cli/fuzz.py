"""`kvproof fuzz`: random commands beyond the exhaustive scopes."""

from collections.abc import Sequence

from kvproof.cli.flags import Parser, add_patience, add_selection, selection
from kvproof.cli.planned import run_planned


def run(arguments: Sequence[str]) -> int:
    parser = Parser("fuzz", "Random enabled commands beyond the exhaustive scopes; what fails is shrunk and kept.")
    add_selection(parser)
    add_patience(parser)
    parsed = parser.read(arguments)
    return run_planned(selection(parsed, ("fuzz",)), parsed)
