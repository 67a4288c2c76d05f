"""failed-copies-are-never-published."""

from kvmodel.actions import Action
from kvmodel.setting import Setting
from kvmodel.state import State, pool_of
from kvmodel.transfer_job import LOAD, NONE, PROMOTION, TIERS_OF, Job
from kvspecs.property import Broken, Property
from kvspecs.safety.completions import FAILURES, failed_now


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    """Judged when a live job with a failed copy is completed, and when one expires, which fails as a whole: nothing of
    it that failed is published or counted as loaded, and what could not be read is no longer offered."""
    for job, bad in failed_now(before, action, after):
        broken = _misused(setting, before, job, bad, after)
        if broken:
            return broken
    return None


def _misused(setting: Setting, before: State, job: Job, bad: frozenset[int], after: State) -> Broken:
    read, tier = TIERS_OF[job.direction]
    old, new = pool_of(before, tier), pool_of(after, tier)
    for position in sorted(bad):
        pair = job.pairs[position]
        name = setting.key_names[pair.key - 1]
        if new.keys[pair.destination] == pair.key != old.keys[pair.destination]:
            return f"the copy of {name!r} into {tier} block {pair.destination} failed, and it can be hit there"
        if job.direction in (LOAD, PROMOTION) and pool_of(after, read).keys[pair.source] == pair.key:
            moved = "loaded" if job.direction == LOAD else "promoted"
            return f"{name!r} could not be {moved} from {read} block {pair.source}, and can still be hit there"
    return _counted(before, after, job, min(bad)) if job.direction == LOAD and job.request != NONE else None


def _counted(before: State, after: State, job: Job, intact: int) -> Broken:
    old, new = before.requests[job.request], after.requests[job.request]
    if job.id in old.jobs and new.table and new.computed > old.computed + intact:
        return f"request {job.request} counts {new.computed - old.computed} blocks as loaded, and only {intact} were"
    return None


PROPERTY = Property(
    "failed-copies-are-never-published",
    "What a copy failed to bring over, on any worker or by its deadline, is neither hit nor counted as loaded; what "
    "could not be read is not offered again.",
    on_step=on_step,
    actions=FAILURES,
)
