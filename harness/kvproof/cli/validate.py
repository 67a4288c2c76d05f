"""`kvproof validate`: does the contract explain what a running engine logged?"""

from collections.abc import Sequence
from pathlib import Path

from kvproof import __version__, verdict
from kvproof.budget import parse_budget
from kvproof.cli.flags import Parser
from kvproof.cli.planned import report
from kvproof.cli.single import run_one
from kvproof.job import Job
from kvproof.log.entry import BadLog
from kvproof.log.lines import Lines
from kvproof.usage import BadUsage
from kvproof.verdict import Verdict


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
    parser.add_argument("--budget", metavar="TIME", type=parse_budget, help="stop after 60s, 2m, 500ms: UNDETERMINED")
    parsed = parser.read(arguments)
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
        said, failures = f"REFUTED in {result.seconds:.1f} s.", [f"REFUTED {result.detail}"]
    else:
        said, failures = f"{result.verdict} in {result.seconds:.1f} s; {result.detail}.", []
    report(f"{first}\n{said}", failures, [result], parsed)
    if outcome.signal is not None:
        return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
    return verdict.exit_status([result])
