"""false-reset-serves-nothing-old."""

from kvmodel.actions import Action, Reset
from kvmodel.rules.reset import answers_true
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import LIVE, publishes_into
from kvspecs.property import Broken, Property
from kvspecs.safety.true_reset_serves_nothing_old import left_over


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    assert isinstance(action, Reset)
    if answers_true(setting, after, action):
        return None
    found = left_over(setting, after, action.tiers)
    if found is None:
        publishing = (job for job in after.jobs if job.view == LIVE and publishes_into(job, action.tiers))
        found = next((f"job {job.id} can still publish" for job in publishing), None)
    if found is None and action.meaning == "invalidate":
        survivors = (number for number, request in enumerate(after.requests) if request.table and not request.outdated)
        found = next(
            (f"request {number} may still publish what the old weights computed" for number in survivors), None
        )
    return f"the reset answered False, and {found}" if found else None


PROPERTY = Property(
    "false-reset-serves-nothing-old",
    "Even after a reset that answered False nothing from before it can be hit or published in the tiers that it named.",
    on_step=on_step,
    actions=frozenset({"Reset"}),
    holds_for="kvoffload and strict reading",
)
