"""`kvproof coverage`: what the engines reach of the machine, in full, by engine."""

import sys
from collections.abc import Iterator, Mapping, Sequence

from kvmodel.errors import BadScope
from kvproof import plan, verdict
from kvproof.cli.flags import Parser, add_selection, selection
from kvproof.cli.planned import WORKERS
from kvproof.cli.progress import ProgressLine
from kvproof.cores import cores
from kvproof.engines.followed import followed
from kvproof.job import Job
from kvproof.report import coverage_tables, json_report
from kvproof.report.coverage_tables import CLOSED, Table
from kvproof.report.junit import to_junit
from kvproof.runner import run_jobs
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict

FOLLOWED = ("explore", "conform", "fuzz")
"""Engines that go through the machine. prove takes no steps, it is about all at once; soak has books of its own."""


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "coverage",
        "Run what check runs, and say of every engine what it reaches of the machine: actions, outcomes of guards, "
        "modes, phases, consecutive actions. Status 2 if a whole run leaves an action, an outcome or a mode out.",
    )
    add_selection(parser)
    parsed = parser.read(arguments)
    chosen = selection(parsed)
    try:
        planned = plan.build(chosen)
    except BadScope as error:
        raise BadUsage(str(error)) from None
    wanted = [(job, cost) for job, cost in zip(planned.jobs, planned.seconds, strict=True) if job.engine in FOLLOWED]
    if not wanted:
        raise BadUsage("nothing to follow: no engine that goes through the machine is planned for this selection")
    jobs = [job for job, _ in wanted]
    progress = ProgressLine()
    outcome = run_jobs(
        [followed(job) for job in jobs],
        costs=[cost for _, cost in wanted],
        workers=min(WORKERS, cores()),
        budget_s=parsed.budget,
        show=progress.show,
    )
    progress.clear()
    by_engine = _by_engine(jobs, outcome.results)
    found = coverage_tables.tables(by_engine)
    lines = [coverage_tables.text(found, list(by_engine)), *_not_green(jobs, outcome.results)]
    status = verdict.exit_status(outcome.results)
    if chosen.whole and status == 0 and (lacking := list(_lacking(found))):
        lines.append(f"ERROR no engine reached {', '.join(lacking)}")
        status = verdict.BAD_USAGE
    stream = sys.stderr if parsed.json == "-" else sys.stdout
    stream.write("\n".join(lines) + "\n")
    stream.flush()
    if parsed.json is not None:
        json_report.write(parsed.json, coverage_tables.to_json(found, outcome.results))
    if parsed.junit is not None:
        json_report.write(parsed.junit, to_junit(outcome.results))
    if outcome.signal is not None:
        return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
    return status


def _by_engine(jobs: Sequence[Job], results: Sequence[Result]) -> Mapping[str, list[Result]]:
    """Results by engine and device: `explore`, `conform ledger`."""
    found: dict[str, list[Result]] = {}
    for job, result in zip(jobs, results, strict=True):
        found.setdefault(" ".join(filter(None, (job.engine, job.device))), []).append(result)
    return found


def _lacking(found: Sequence[Table]) -> Iterator[str]:
    for table in found:
        if table.kind in CLOSED:
            yield from table.missing


def _not_green(jobs: Sequence[Job], results: Sequence[Result]) -> Iterator[str]:
    """What stopped early, so that it covered less; kvproof check tells what is wrong there."""
    for job, result in zip(jobs, results, strict=True):
        if result.verdict not in (Verdict.PROVED, Verdict.PASSED):
            why = result.property or result.detail.partition("\n")[0]
            yield f"{result.verdict} {job}: {why}"
