"""`kvproof soak`: free-running streams."""

from collections.abc import Sequence

from kvproof.cli.flags import Parser, add_selection, selection
from kvproof.cli.planned import run_planned
from kvproof.targets.registry import is_ours
from kvproof.usage import BadUsage


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "soak",
        "Free-running streams, threads and bytes with random delays; the content of every block is checked. Not "
        "deterministic: a seed repeats the commands, and not their timing.",
    )
    add_selection(parser)
    parsed = parser.read(arguments)
    chosen = selection(parsed, ("soak",))
    if chosen.device == "ledger":
        raise BadUsage("soak needs real streams and the ledger device has none; use --device host or cuda")
    if not is_ours(chosen.target):
        raise BadUsage(
            f"soak drives kvoffload's devices, and the target is {chosen.target!r:.100}; use conform or fuzz"
        )
    return run_planned(chosen, parsed)
