"""workers-agree."""

from kvmodel.actions import Action, DuplicateReport, Report, ReportMark
from kvmodel.setting import Setting
from kvmodel.state import State, job_with, without_job
from kvmodel.transfer_job import FORGOTTEN, LOST
from kvspecs.property import Broken, Property
from kvspecs.safety.completions import REPORTS, completes, reported_now


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if not isinstance(action, Report | ReportMark):
        if after.jobs == before.jobs or _is_late(before, action, after):
            return None
        return "a completion that no worker owed changed the job table"
    reported = reported_now(before, action)
    for job in reported:
        if job.view == FORGOTTEN:
            continue
        owed = not completes(job, action.worker)
        gone = job_with(after, job.id) is None
        if gone and owed:
            return f"job {job.id} was completed before every worker had reported it"
        if not gone and not owed:
            return f"job {job.id} was not completed although every worker has reported it"
    if isinstance(action, ReportMark) and len(before.jobs) > len(reported):
        known = {job.id for job in reported}
        for job in before.jobs:
            if job.id not in known and job_with(after, job.id) != job:
                return f"a mark of worker {action.worker} changed job {job.id}, of which it says nothing new"
    return None


def _is_late(before: State, action: Action, after: State) -> bool:
    """The report of a forgotten job comes although it was lost: an engine that waits for it forgets the job's row now,
    the machine, which knew that it would not come, has done so before."""
    if not isinstance(action, DuplicateReport):
        return False
    job = job_with(before, action.job)
    if job is None or job.view != FORGOTTEN or job.progress[action.worker] != LOST:
        return False
    return [other for other in after.jobs if other.id != job.id] == list(without_job(before.jobs, job.id))


PROPERTY = Property(
    "workers-agree",
    "A job is completed once, when exactly the required workers have reported it.",
    on_step=on_step,
    actions=REPORTS,
)
