"""`kvproof show`: tell a saved trace step by step, as a table, a page or a diagram."""

import shutil
import sys
from collections.abc import Sequence

from kvproof import verdict
from kvproof.budget import parse_budget
from kvproof.cli.flags import Parser, add_patience, add_target
from kvproof.cli.page import check_page, write_page
from kvproof.cli.planned import report, written
from kvproof.cli.single import headline, job_of, read_trace, run_one
from kvproof.report.mermaid import mermaid
from kvproof.report.screen import coloured
from kvproof.report.story_table import lanes_named, story_table
from kvproof.usage import BadUsage


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "show",
        "Perform a saved trace again and tell it step by step: what each command did to which request, block and job, "
        "and where contract and target part. Exit status as of replay.",
    )
    parser.add_argument("trace", metavar="TRACE", help="an id (or its beginning), a trace file, or a folder with one")
    parser.add_argument("--html", metavar="FILE", help="write the timeline there: one page, which needs no network")
    parser.add_argument("--mermaid", action="store_true", help="print a diagram for the comment of a pull request")
    parser.add_argument("--only", metavar="NAMES", help='what is about these alone, such as "d0,x,job 1,w0"')
    add_target(parser)
    add_patience(parser)
    parser.add_argument("--budget", metavar="TIME", type=parse_budget, help="stop after 60s, 2m, 500ms: UNDETERMINED")
    parsed = parser.read(arguments)
    if parsed.mermaid and parsed.only:
        raise BadUsage("--mermaid shows the whole trace; leave out --only")
    check_page(parsed.html)
    trace, path = read_trace(parsed.trace)
    job = job_of("tell", trace, parsed)
    outcome = run_one(job, parsed.budget)
    result = outcome.results[0]
    story = result.story
    if story is None:
        report(
            f"{headline(job, path)}\n{result.verdict}: {result.detail.partition(chr(10))[0]}.",
            [],
            [result],
            parsed,
        )
        if outcome.signal is not None:
            return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
        return verdict.exit_status([result])
    stream = sys.stderr if parsed.json == "-" else sys.stdout
    if parsed.html is not None:
        write_page(parsed.html, story)
        stream.write(f"{result.verdict}: {len(story.steps):,} steps, in {parsed.html}\n")
    elif parsed.mermaid:
        stream.write(mermaid(story) + "\n")
    else:
        try:
            wanted = lanes_named(story, [word.strip() for word in (parsed.only or "").split(",") if word.strip()])
        except ValueError as error:
            names = ", ".join(lane.name for lane in story.lanes[:12])
            raise BadUsage(f"--only names {str(error)!r:.60}, which is not in the trace; there is {names}") from None
        text = story_table(story, shutil.get_terminal_size((120, 40)).columns, wanted)
        stream.write(coloured(text, stream.isatty()) + "\n")
    written([result], parsed)
    return verdict.exit_status([result])
