"""stale-completions-change-nothing."""

from kvmodel.actions import Action, DuplicateReport, Report
from kvmodel.owners import NOTHING, holding_of_job
from kvmodel.setting import Setting
from kvmodel.state import State, job_with
from kvmodel.transfer_job import ABANDONED, LIVE, NONE, REPORTED
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    """A repeated or forgotten completion releases nothing; the last one of an abandoned job its own pins, once."""
    assert isinstance(action, Report | DuplicateReport)
    job = job_with(before, action.job)
    if isinstance(action, Report) and job is not None and job.view == LIVE:
        return None
    if after.device.keys != before.device.keys or after.host.keys != before.host.keys:
        return f"a stale completion of job {action.job} changed what can be hit"
    pins = NOTHING
    drained: tuple[int, ...] = ()
    if isinstance(action, Report) and job is not None and job.view == ABANDONED:
        others = [progress for worker, progress in enumerate(job.progress) if worker != action.worker]
        if all(progress == REPORTED for progress in others):
            pins = holding_of_job(setting.contract, job)
            if job.request != NONE and job.id in before.requests[job.request].jobs:
                drained = before.requests[job.request].table
    for tier, old, new, own in (
        ("device", before.device.refs, after.device.refs, pins.device + drained),
        ("host", before.host.refs, after.host.refs, pins.host),
    ):
        for block, count in enumerate(old):
            if new[block] != count - own.count(block):
                return (
                    f"a stale completion of job {action.job} "
                    f"moved {tier} block {block} from {count} to {new[block]} references"
                )
    return None


PROPERTY = Property(
    "stale-completions-change-nothing",
    "The completion of an abandoned, forgotten, finished or unknown job publishes nothing, "
    "and releases its own pins once at most.",
    on_step=on_step,
    actions=frozenset({"Report", "DuplicateReport"}),
)
