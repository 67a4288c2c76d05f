"""Results for machines, in the schema that every verb's `--json` shares."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kvproof.atomic import write_whole
from kvproof.usage import BadUsage
from kvproof.verdict import Result, overall

SCHEMA = 1


def to_json(results: Sequence[Result]) -> str:
    """The report: `schema`, `verdict`, and for each result what `Result` documents, and the id of its failure."""
    report = {
        "schema": SCHEMA,
        "verdict": str(overall(results)),
        "results": [
            {
                "engine": result.engine,
                "target": result.target,
                "discipline": result.discipline,
                "scope": result.scope,
                "property": result.property,
                "verdict": str(result.verdict),
                "seconds": round(result.seconds, 3),
                "states": result.states,
                "transitions": result.transitions,
                "trace": result.trace,
                "id": None if result.failure is None else result.failure.fingerprint,
            }
            for result in results
        ],
    }
    return json.dumps(report, indent=2) + "\n"


def check_destination(destination: str) -> None:
    """Raises BadUsage if a report cannot be written there; asked before the work, and not after it."""
    path = Path(destination)
    if destination != "-" and (path.is_dir() or not path.parent.is_dir()):
        raise BadUsage(f"report {destination!r:.200} cannot be written; name a file in a folder that exists, or -")


def write(destination: str, text: str) -> None:
    """Write a report to a file, as a whole or not at all, or for `-` to standard output. Raises BadUsage."""
    if destination == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        write_whole(Path(destination), text)
    except OSError as error:
        raise BadUsage(f"report {destination} cannot be written ({error.strerror})") from None
