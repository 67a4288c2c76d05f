"""false-reset-has-a-cause."""

from kvmodel.actions import Action, Reset
from kvmodel.rules.reset import answers_true
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.tiers import names_device
from kvmodel.transfer_job import FORGOTTEN, holds_block_of
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    assert isinstance(action, Reset)
    if answers_true(setting, after, action):
        return None
    if any(job.view != FORGOTTEN and holds_block_of(job, action.tiers) for job in after.jobs):
        return None
    if names_device(action.tiers) and any(request.table for request in after.requests):
        return None
    return "the reset answered False, although no job is live or abandoned there and no request holds a block"


PROPERTY = Property(
    "false-reset-has-a-cause",
    "A reset answers False only while a job that is live or abandoned, or a survivor, holds a block of what it named.",
    on_step=on_step,
    actions=frozenset({"Reset"}),
)
