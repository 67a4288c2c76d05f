"""dropped-jobs-publish-nothing."""

from kvmodel.actions import Action
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import LIVE, TIERS_OF
from kvspecs.property import Broken, Property
from kvspecs.safety.completions import COMPLETIONS, reported_now


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    live = [job for job in reported_now(before, action) if job.view == LIVE]
    carried = {(TIERS_OF[job.direction][1], pair.destination, pair.key) for job in live for pair in job.pairs}
    for tier, old, new in (
        ("device", before.device.keys, after.device.keys),
        ("host", before.host.keys, after.host.keys),
        ("second", before.second.keys, after.second.keys),
    ):
        for block, key in enumerate(new):
            if key and key != old[block] and (tier, block, key) not in carried:
                name = setting.key_names[key - 1]
                return f"a completion published {name!r} in {tier} block {block}, which no live job carried there"
    return None


PROPERTY = Property(
    "dropped-jobs-publish-nothing",
    "A completion publishes only what a live job has carried, where it has carried it.",
    on_step=on_step,
    actions=COMPLETIONS,
)
