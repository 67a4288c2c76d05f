"""Run a selection of the plan and report it: what check, explore, conform, fuzz and soak have in common."""

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvmodel.errors import BadScope
from kvproof import __version__, plan, verdict
from kvproof.cli import bundle
from kvproof.cli.progress import ProgressLine
from kvproof.commit import current_commit
from kvproof.cores import cores
from kvproof.job import Job
from kvproof.known import applied, read_known
from kvproof.plan import Plan, Selection
from kvproof.report import json_report
from kvproof.report.coverage import coverage
from kvproof.report.failure_text import failure_text
from kvproof.report.junit import to_junit
from kvproof.report.screen import Finished, Header, coloured, screen
from kvproof.report.step_summary import add_to_step_summary
from kvproof.runner import run_jobs
from kvproof.targets.registry import is_ours
from kvproof.trace import store
from kvproof.trace.trace import of_failure
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict

WORKERS = 2


def run_planned(selection: Selection, arguments: argparse.Namespace) -> int:
    """Run the selection, save what failed, print the screen and write the JSON. Returns the exit status."""
    try:
        planned = plan.build(selection)
    except BadScope as error:
        raise BadUsage(str(error)) from None
    if not planned.jobs:
        reasons = {cell.skipped for row in planned.rows for cell in row.cells.values() if cell.skipped}
        raise BadUsage(f"nothing to run: {', '.join(sorted(reasons)) or 'no scope is planned for this selection'}")
    progress = ProgressLine()
    outcome = run_jobs(
        planned.jobs,
        costs=planned.seconds,
        workers=min(WORKERS, cores()),
        budget_s=arguments.budget,
        show=progress.show,
    )
    progress.clear()
    commit = current_commit()
    known: Mapping[str, str] = read_known(Path(arguments.known)) if arguments.known else {}
    marked = applied(outcome.results, known, complete=selection.whole)
    saved = Saved(commit)
    results = saved.all(planned.jobs, marked[: len(planned.jobs)])
    finished = Finished(
        planned,
        results,
        extra=(*marked[len(planned.jobs) :], *_uncovered(planned, results)),
        seconds=outcome.seconds,
        interrupted=outcome.signal is not None,
    )
    header = Header(__version__, selection.target, commit, selection.seed, cores(), not is_ours(selection.target))
    report(screen(header, finished), saved.texts(), finished.everything, arguments)
    if outcome.signal is not None:
        return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
    return verdict.exit_status(finished.everything)


def report(text: str, failures: Sequence[str], results: Sequence[Result], arguments: argparse.Namespace) -> None:
    """Print a screen with its failures, tracebacks of errors on standard error, and write JSON, JUnit and the summary
    of a GitHub step where they are asked for.

    With `--json -` standard output is the JSON alone, and people read on standard error.
    """
    destination: str | None = arguments.json
    stream = sys.stderr if destination == "-" else sys.stdout
    shown = "\n\n".join([text, *failures])
    stream.write(coloured(shown, stream.isatty()) + "\n")
    stream.flush()
    errors = dict.fromkeys(result.detail.rstrip() for result in results if result.verdict is Verdict.ERROR)
    for detail in errors:  # each once: one cause often stops several engines
        if "\n" in detail:
            sys.stderr.write(f"\n{detail}\n")
    written(results, arguments)
    try:
        add_to_step_summary(text, failures)
    except OSError as error:  # the verdict matters more than the summary: say it, and go on
        sys.stderr.write(f"kvproof: the step summary cannot be written ({error.strerror})\n")


def written(results: Sequence[Result], arguments: argparse.Namespace) -> None:
    """Write the files that `--json` and `--junit` name. Raises BadUsage."""
    if arguments.json is not None:
        json_report.write(arguments.json, json_report.to_json(results))
    if arguments.junit is not None:
        json_report.write(arguments.junit, to_junit(results))


class Saved:
    """Keeps each distinct failure once, with the shortest trace that was found for it."""

    def __init__(self, commit: str, root: Path | None = None) -> None:
        self.commit = commit
        self.root = root or store.default_root()
        self._texts: list[str] = []

    def all(self, jobs: Sequence[Job], results: Sequence[Result]) -> tuple[Result, ...]:
        """The results, each violation with the path of its trace; violations that are new are saved and reported."""
        found: dict[str, list[int]] = {}
        for index, result in enumerate(results):
            if result.failure is not None:
                found.setdefault(result.failure.fingerprint, []).append(index)
        traced = list(results)
        for identifier, indices in found.items():
            first, *others = sorted(indices, key=lambda index: _length(results[index]))
            also = tuple(dict.fromkeys(str(jobs[index]) for index in others))
            path = self._save(identifier, jobs[first], results[first], also)
            for index in indices:
                traced[index] = dataclasses.replace(results[index], trace=path)
        return tuple(traced)

    def texts(self) -> Sequence[str]:
        """The report of each violation that is not known."""
        return self._texts

    def _save(self, identifier: str, job: Job, result: Result, also: tuple[str, ...]) -> str | None:
        failure = result.failure
        assert failure is not None
        folder = store.shown(self.root / identifier)
        text = failure_text(failure, saved=folder, also=also)
        path: Path | None = None
        try:
            trace = of_failure(job, failure, self.commit)
            files = bundle.beside(job, result, trace, len(self._texts))
            path = store.save(self.root, identifier, trace, text + "\n", files)
        except (OSError, ValueError) as error:  # the verdict matters more than the file: say it, and go on
            text = failure_text(failure, also=also) + f" ({error})"
        if result.verdict is not Verdict.KNOWN:
            self._texts.append(text)
        return None if path is None else store.shown(path)


def _length(result: Result) -> int:
    return len(result.failure.commands) if result.failure is not None else 0


def _uncovered(planned: Plan, results: Sequence[Result]) -> tuple[Result, ...]:
    """An ERROR if the whole plan was carried out and still left an action or an outcome of a guard unreached.

    After a violation or a cut the gap is only a consequence, and is not reported beside its cause.
    """
    green = verdict.exit_status(results) == 0
    missing = coverage(results).missing
    if not (planned.selection.whole and green and missing):
        return ()
    detail = f"no engine reached {', '.join(missing)}"
    target = planned.selection.target
    return (Result("coverage", target, None, "", None, Verdict.ERROR, 0.0, detail=detail),)
