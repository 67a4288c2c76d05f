"""`kvproof check`: the whole plan."""

import dataclasses
from collections.abc import Sequence

from kvproof.cli.flags import Parser, add_beyond_contract, add_patience, add_selection, add_watched, selection
from kvproof.cli.planned import run_planned
from kvproof.usage import BadUsage

REQUIRABLE = ("cuda",)


def run(arguments: Sequence[str]) -> int:
    parser = Parser("check", "Run every engine at its planned scopes, both disciplines, and print one screen.")
    add_selection(parser)
    add_patience(parser)
    add_watched(parser)
    add_beyond_contract(parser)
    parser.add_argument("--all", action="store_true", help="also what is too large for every change (nightly)")
    parser.add_argument("--require", metavar="DEVICE", help="an error, and not SKIPPED, where this device is missing")
    parsed = parser.read(arguments)
    if parsed.require is not None and parsed.require not in REQUIRABLE:
        raise BadUsage(f"device {parsed.require!r:.40} cannot be required; use {' or '.join(REQUIRABLE)}")
    if parsed.all and parsed.scope is not None:
        raise BadUsage("--all adds scopes to the plan and --scope replaces them; give one of them")
    return run_planned(dataclasses.replace(selection(parsed), nightly=parsed.all, require=parsed.require or ""), parsed)
