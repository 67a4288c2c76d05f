"""Completions: which jobs a worker's report, or a mark that covers several, says something new about."""

from kvmodel.actions import Action, Expire, Report, ReportMark
from kvmodel.rules.report_mark import covered
from kvmodel.state import State, job_with
from kvmodel.transfer_job import LIVE, REPORTED, Job, failed_positions

REPORTS = frozenset({"Report", "ReportMark", "DuplicateReport", "RepeatMark"})
"""Names of the actions that bring a completion to the scheduler, a new one or one that came before."""

COMPLETIONS = REPORTS | {"LoseReport", "LoseMark", "ForgeReport", "Expire"}
"""The same with those that bring none, or one that was never earned; and what takes the place of one."""

FAILURES = frozenset({"Report", "ReportMark", "Expire"})
"""Names of the actions by which a job can turn out to have failed."""


def reported_now(before: State, action: Action) -> tuple[Job, ...]:
    """Jobs, by id, that a worker reports for the first time: of a repeated, lost or forged report none."""
    if isinstance(action, ReportMark):
        return covered(before, *action)
    job = job_with(before, action.job) if isinstance(action, Report) else None
    return () if job is None else (job,)


def failed_now(before: State, action: Action, after: State) -> tuple[tuple[Job, frozenset[int]], ...]:
    """Live jobs that turn out to have failed, with the positions of the pairs that did: those that are completed, and
    one that expires, which failed as a whole."""
    if isinstance(action, Expire):
        job = job_with(before, action.job)
        return () if job is None or job.view != LIVE else ((job, frozenset(range(len(job.pairs)))),)
    return tuple(
        [
            (job, failed_positions(job))
            for job in reported_now(before, action)
            if job.failed and job.view == LIVE and job_with(after, job.id) is None
        ]
    )


def completes(job: Job, worker: int) -> bool:
    """This worker is the last of those that have to report the job."""
    return all(progress == REPORTED for other, progress in enumerate(job.progress) if other != worker)
