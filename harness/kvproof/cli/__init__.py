"""The command line: a module for each verb, imported only when it is used."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from kvproof import __version__
from kvproof.usage import BadUsage
from kvproof.verdict import BAD_USAGE, INTERRUPTED


class Verb(NamedTuple):
    module: str
    says: str


LONGEST_SENTENCE = 2_000
"""Of an error, in characters."""

VERBS: Mapping[str, Verb] = {
    "check": Verb("check", "run every engine at its planned scopes, and print one screen"),
    "explore": Verb("explore", "search the reference machine exhaustively, with liveness"),
    "prove": Verb("prove", "the contract for all sizes, by induction (needs z3)"),
    "conform": Verb("conform", "search machine and target together: every command edge of a scope"),
    "search": Verb("search", "every sequence of commands up to a length, for targets that choose in their own way"),
    "fuzz": Verb("fuzz", "random commands beyond the exhaustive scopes, shrunk when they fail"),
    "soak": Verb("soak", "free-running streams, threads and bytes; the one engine that is not deterministic"),
    "replay": Verb("replay", "judge a saved trace again, by this version's machine"),
    "show": Verb("show", "tell a saved trace step by step: a table, a page (--html) or a diagram (--mermaid)"),
    "validate": Verb("validate", "follow a log of a running engine, as far as the contract explains it"),
    "watch": Verb("watch", "the same while the log is written: until it ends, or Ctrl-C"),
    "shrink": Verb("shrink", "make a saved trace smaller while it fails in the same way"),
    "demo": Verb("demo", "write an engine with one planted bug, for the tutorial"),
    "bisect": Verb("bisect", "which commit of the target's repository has brought a failure in"),
    "init": Verb("init", "write a commented adapter for an engine of yours, to be filled in"),
    "coverage": Verb(
        "coverage", "what the engines reach of the machine: actions, guards, phases, modes, pairs; in full"
    ),
    "list": Verb("list_", "targets, scopes or properties that there are"),
    "doctor": Verb("doctor", "what kvproof finds on this machine, and whether it will do"),
}


class _Module(Protocol):
    def run(self, arguments: Sequence[str]) -> int: ...


def usage() -> str:
    """What `kvproof --help` prints."""
    width = max(map(len, VERBS))
    return "\n".join(
        [
            "usage: kvproof VERB [flags]      kvproof VERB --help explains a verb",
            "",
            *(f"  {name:<{width}}  {verb.says}" for name, verb in VERBS.items()),
            "",
            "kvproof check holds KV-cache offloading against its contract. For yours, begin with kvproof init.",
            "Exit status: 0 green, 1 refuted, 2 error or bad usage, 3 cut short, 4 counterexample to induction,",
            "130 interrupted.",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status. What the user got wrong is one sentence on standard error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(words)
    except BadUsage as error:
        sys.stderr.write(f"kvproof: {_one_line(str(error))}\n")
        return BAD_USAGE
    except KeyboardInterrupt:  # before or after the engines ran: while they run, the runner takes it
        sys.stderr.write("kvproof: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_USAGE


def _one_line(text: str) -> str:
    """What may name anything that somebody wrote, as one line that a terminal shows and does not obey."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return shown if len(shown) <= LONGEST_SENTENCE else f"{shown[:LONGEST_SENTENCE]} ..."


def _dispatch(words: list[str]) -> int:
    name = words[0] if words else ""
    if name in ("-h", "--help", "help"):
        sys.stdout.write(usage() + "\n")
        return 0
    if name == "--version":
        sys.stdout.write(f"kvproof {__version__}\n")
        return 0
    verb = VERBS.get(name)
    if verb is None:
        what = f"verb {name!r:.60} does not exist" if name else "no verb given"
        raise BadUsage(f"{what}; use one of {', '.join(VERBS)}, or --help")
    module = cast(_Module, importlib.import_module(f"kvproof.cli.{verb.module}"))
    try:
        return module.run(words[1:])
    except SystemExit as stop:  # argparse, after --help
        return stop.code if isinstance(stop.code, int) else 0
