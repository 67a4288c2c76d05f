"""true-reset-serves-nothing-old."""

from kvmodel.actions import Action, Reset
from kvmodel.rules.reset import answers_true
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.tiers import Tiers, names_device, names_host
from kvmodel.transfer_job import FORGOTTEN, publishes_into
from kvspecs.property import Broken, Property


def left_over(setting: Setting, after: State, tiers: Tiers) -> Broken:
    """What could still be served from before a reset of these tiers, or None."""
    for tier, named, pool in (
        ("device", names_device(tiers), after.device),
        ("host", names_host(tiers), after.host),
        ("second", names_host(tiers), after.second),
    ):
        for block, key in enumerate(pool.keys):
            if named and key:
                return f"{tier} block {block} can still be hit as {setting.key_names[key - 1]!r}"
    for number, request in enumerate(after.requests):
        if request.pins is not None:
            return f"the lookup of request {number} still pins what it found"
    return None


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    assert isinstance(action, Reset)
    if not answers_true(setting, after, action):
        return None
    found = left_over(setting, after, action.tiers)
    if found is None:
        publishing = (job for job in after.jobs if job.view != FORGOTTEN and publishes_into(job, action.tiers))
        found = next((f"job {job.id} can still publish" for job in publishing), None)
    if found is None and action.meaning == "invalidate":
        held = (number for number, request in enumerate(after.requests) if request.table)
        found = next((f"request {number} still computes with the old weights' blocks" for number in held), None)
    return f"the reset answered True, and {found}" if found else None


PROPERTY = Property(
    "true-reset-serves-nothing-old",
    "After a reset that answered True nothing from before it can be hit or published in the tiers that it named (the "
    "second one with the host), or, if it meant `invalidate`, used.",
    on_step=on_step,
    actions=frozenset({"Reset"}),
)
