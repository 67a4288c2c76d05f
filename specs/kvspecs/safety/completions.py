"""Completions: which jobs a worker's report, or a mark that covers several, says something new about."""

from kvmodel.actions import Action, Report, ReportMark
from kvmodel.rules.report_mark import covered
from kvmodel.state import State, job_with
from kvmodel.transfer_job import REPORTED, Job

REPORTS = frozenset({"Report", "ReportMark", "DuplicateReport", "RepeatMark"})
"""Names of the actions that bring a completion to the scheduler, a new one or one that came before."""

COMPLETIONS = REPORTS | {"LoseReport", "LoseMark", "ForgeReport"}
"""The same with those that bring none, or one that was never earned."""


def reported_now(before: State, action: Action) -> tuple[Job, ...]:
    """Jobs, by id, that a worker reports for the first time: of a repeated, lost or forged report none."""
    if isinstance(action, ReportMark):
        return covered(before, *action)
    job = job_with(before, action.job) if isinstance(action, Report) else None
    return () if job is None else (job,)


def completes(job: Job, worker: int) -> bool:
    """This worker is the last of those that have to report the job."""
    return all(progress == REPORTED for other, progress in enumerate(job.progress) if other != worker)
