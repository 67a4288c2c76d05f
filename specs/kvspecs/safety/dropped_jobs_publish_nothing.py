"""dropped-jobs-publish-nothing."""

from kvmodel.actions import Action, Report
from kvmodel.setting import Setting
from kvmodel.state import State, job_with
from kvmodel.transfer_job import LIVE
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    job = job_with(before, action.job) if isinstance(action, Report) else None
    carried = {(pair.destination, pair.key) for pair in job.pairs} if job is not None and job.view == LIVE else set()
    for tier, old, new in (
        ("device", before.device.keys, after.device.keys),
        ("host", before.host.keys, after.host.keys),
    ):
        for block, key in enumerate(new):
            if key and key != old[block] and (block, key) not in carried:
                name = setting.key_names[key - 1]
                return f"a completion published {name!r} in {tier} block {block}, which no live job carried there"
    return None


PROPERTY = Property(
    "dropped-jobs-publish-nothing",
    "A completion publishes only what a live job has carried, where it has carried it.",
    on_step=on_step,
    actions=frozenset({"Report", "DuplicateReport", "LoseReport", "ForgeReport"}),
)
