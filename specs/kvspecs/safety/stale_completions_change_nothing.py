"""stale-completions-change-nothing."""

from kvmodel.actions import Action, DuplicateReport, RepeatMark, Report, ReportMark
from kvmodel.owners import holding_of_job
from kvmodel.request import DRAINING, held
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import FORGOTTEN, LIVE, NONE
from kvspecs.property import Broken, Property
from kvspecs.safety.completions import REPORTS, completes, reported_now


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    """A repeated or forgotten completion releases nothing; the last one of an abandoned job its own pins, once. A mark
    may bring stale completions along with others: it releases just what all of them hold."""
    assert isinstance(action, Report | ReportMark | DuplicateReport | RepeatMark)
    reported = reported_now(before, action)
    live = [job.view == LIVE for job in reported]
    if live and all(live):
        return None
    if any(job.view == LIVE and job.failed for job in reported):
        return None  # what failed may be withdrawn from lookups too: see failed-copies-are-never-published
    old_keys = (before.device.keys, before.host.keys, before.second.keys)
    if not any(live) and (after.device.keys, after.host.keys, after.second.keys) != old_keys:
        return f"{_words(action)} changed what can be hit"
    device: tuple[int, ...] = ()
    host: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    for job in reported:
        if job.view == FORGOTTEN or not completes(job, action.worker):
            continue
        pins = holding_of_job(setting.contract, job)
        device, host, second = device + pins.device, host + pins.host, second + pins.second
        request = before.requests[job.request] if job.request != NONE else None
        if request is not None and request.phase == DRAINING and job.id in request.jobs:
            device += held(request.table)
    for tier, old, new, own in (
        ("device", before.device.refs, after.device.refs, device),
        ("host", before.host.refs, after.host.refs, host),
        ("second", before.second.refs, after.second.refs, second),
    ):
        for block, count in enumerate(old):
            if new[block] != count - own.count(block):
                return f"{_words(action)} moved {tier} block {block} from {count} to {new[block]} references"
    return None


def _words(action: Report | ReportMark | DuplicateReport | RepeatMark) -> str:
    match action:
        case ReportMark(_, _, mark):
            return f"mark {mark}, which reports what is stale,"
        case RepeatMark():
            return "a mark that came before"
        case _:
            return f"a stale completion of job {action.job}"


PROPERTY = Property(
    "stale-completions-change-nothing",
    "The completion of an abandoned, forgotten, finished or unknown job publishes nothing, "
    "and releases its own pins once at most.",
    on_step=on_step,
    actions=REPORTS,
)
