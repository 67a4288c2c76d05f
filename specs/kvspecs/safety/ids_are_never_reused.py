"""ids-are-never-reused."""

from kvmodel.actions import Action
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if after.next_job < before.next_job:
        return f"the next job id went back from {before.next_job} to {after.next_job}"
    if after.jobs == before.jobs:
        return None
    old = {job.id for job in before.jobs}
    for job in after.jobs:
        if job.id not in old and not before.next_job <= job.id < after.next_job:
            return f"job id {job.id} was issued again"
    if len({job.id for job in after.jobs}) < len(after.jobs):
        return "two jobs have one id"
    return None


PROPERTY = Property(
    "ids-are-never-reused",
    "A job id is issued once, also across resets.",
    on_step=on_step,
)
