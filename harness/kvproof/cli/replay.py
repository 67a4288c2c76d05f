"""`kvproof replay`: judge a saved trace again."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from kvproof import verdict
from kvproof.budget import parse_budget
from kvproof.cli.flags import Parser, add_patience, add_target
from kvproof.cli.planned import report
from kvproof.cli.single import headline, job_of, read_trace, run_one
from kvproof.report.failure_text import failure_text
from kvproof.trace import store
from kvproof.trace.trace import Trace
from kvproof.verdict import Result, Verdict


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "replay",
        "Perform the commands of a saved trace on its target, or on another, and judge them by this version's machine.",
    )
    parser.add_argument("trace", metavar="TRACE", help="an id (or its beginning), a trace file, or a folder with one")
    add_target(parser)
    add_patience(parser)
    parser.add_argument("--prune", action="store_true", help="remove the kept failure if it is FIXED")
    parser.add_argument("--budget", metavar="TIME", type=parse_budget, help="stop after 60s, 2m, 500ms: UNDETERMINED")
    parsed = parser.read(arguments)
    trace, path = read_trace(parsed.trace)
    job = job_of("replay", trace, parsed)
    outcome = run_one(job, parsed.budget)
    result = dataclasses.replace(_against(trace, outcome.results[0]), trace=store.shown(path))
    failures = (
        [] if result.failure is None else [failure_text(result.failure, saved=store.shown(path), replay=parsed.trace)]
    )
    said = _sentence(trace, result)
    if parsed.prune and result.verdict is Verdict.FIXED:
        said += f" {_pruned(path)}"
    report(f"{headline(job, path)}\n{said}", failures, [result], parsed)
    if outcome.signal is not None:
        return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
    return verdict.exit_status([result])


def _pruned(path: Path) -> str:
    try:
        removed = store.prune(path)
    except OSError as error:
        return f"It could not be removed ({error})."
    return f"Removed {store.shown(path.parent)}." if removed else "It is no kept failure, and stays."


def _against(trace: Trace, result: Result) -> Result:
    """The result, FIXED where the trace broke something and does not any more."""
    if trace.verdict in (Verdict.REFUTED, Verdict.FRAGILE) and result.verdict is Verdict.PASSED:
        detail = f"{trace.property or 'the violation'} does not occur any more"
        return dataclasses.replace(result, verdict=Verdict.FIXED, detail=detail)
    return result


def _sentence(trace: Trace, result: Result) -> str:
    detail = result.detail.partition("\n")[0]
    count = len(trace.commands)
    commands = f"{count:,} command{'' if count == 1 else 's'}"
    return f"{result.verdict} in {result.seconds:.1f} s; {commands}{f'; {detail}' if detail else ''}."
