"""`kvproof validate`: does the contract explain what a running engine logged?"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from kvproof import __version__, verdict
from kvproof.budget import parse_budget
from kvproof.cli.flags import Parser
from kvproof.cli.page import check_page, write_page
from kvproof.cli.planned import report
from kvproof.cli.single import run_one
from kvproof.commit import current_commit
from kvproof.job import Job
from kvproof.log.entry import BadLog
from kvproof.log.keeping import keep
from kvproof.log.lines import Lines
from kvproof.report.story import Story
from kvproof.trace import store
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict


def run(arguments: Sequence[str]) -> int:
    return judged(
        "validate",
        "Follow a log of a running engine through the reference machine, as far as the contract explains it "
        "(docs/reference/logs.md has the format).",
        arguments,
    )


def judged(verb: str, about: str, arguments: Sequence[str], *, follow: bool = False) -> int:
    """What validate and watch have in common. follow: the log is still written."""
    parser = Parser(verb, about)
    parser.add_argument("log", metavar="LOG", help="a file of JSON lines")
    parser.add_argument("--html", metavar="FILE", help="write the last lines up to a violation there, as a timeline")
    parser.add_argument("--budget", metavar="TIME", type=parse_budget, help="stop after 60s, 2m, 500ms: UNDETERMINED")
    parsed = parser.read(arguments)
    check_page(parsed.html)
    try:
        header = Lines(Path(parsed.log)).header
    except BadLog as error:
        raise BadUsage(str(error)) from None
    job = Job("validate", header.engine, header.contract.discipline, "", header.scope, header.contract,
              options={"log": parsed.log, "follow": follow})  # fmt: skip
    outcome = run_one(job, parsed.budget)
    (result,) = outcome.results
    if result.verdict is Verdict.ERROR and "\n" not in result.detail:
        raise BadUsage(result.detail)
    first = f"kvproof {__version__}   {verb} {parsed.log}   engine {header.engine}   {header.contract.discipline}"
    if result.verdict is Verdict.REFUTED:
        shown = [f"REFUTED {result.detail}"]
        if parsed.html is not None:
            shown.append(_paged(parsed.html, result.story))
        result, saved = _kept(job, result)
        said, failures = f"REFUTED in {result.seconds:.1f} s.", ["\n".join([*shown, *saved])]
    else:
        said, failures = f"{result.verdict} in {result.seconds:.1f} s; {result.detail}.", []
    report(f"{first}\n{said}", failures, [result], parsed)
    if outcome.signal is not None:
        return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
    return verdict.exit_status([result])


def _paged(name: str, story: Story | None) -> str:
    if story is None:
        return "No timeline: the pools are too large to be drawn."
    write_page(name, story)
    return f"Timeline: {name}"


def _kept(job: Job, result: Result) -> tuple[Result, list[str]]:
    """Keep the failure, if a trace can be made of it, as other verbs do. The result with its trace, and what to say."""
    if result.failure is None:
        return result, []
    try:
        path, said = keep(store.default_root(), job, result, current_commit())
    except OSError as error:  # the verdict matters more than the file
        return result, [f"The trace was not saved ({error})."]
    return dataclasses.replace(result, trace=store.shown(path)), [said]
