"""workers-agree."""

from kvmodel.actions import Action, Report
from kvmodel.setting import Setting
from kvmodel.state import State, job_with
from kvmodel.transfer_job import FORGOTTEN, REPORTED
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if not isinstance(action, Report):
        return "a completion that no worker owed changed the job table" if after.jobs != before.jobs else None
    job = job_with(before, action.job)
    if job is None or job.view == FORGOTTEN:
        return None
    others = [progress for worker, progress in enumerate(job.progress) if worker != action.worker]
    owed = any(progress != REPORTED for progress in others)
    gone = job_with(after, job.id) is None
    if gone and owed:
        return f"job {job.id} was completed before every worker had reported it"
    if not gone and not owed:
        return f"job {job.id} was not completed although every worker has reported it"
    return None


PROPERTY = Property(
    "workers-agree",
    "A job is completed once, when exactly the required workers have reported it.",
    on_step=on_step,
    actions=frozenset({"Report", "DuplicateReport"}),
)
