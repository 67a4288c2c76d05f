"""pinned-is-not-evicted."""

from kvmodel.actions import Action, Reset
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import LIVE, LOAD, failed_positions
from kvspecs.property import Broken, Property
from kvspecs.safety.completions import reported_now


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if isinstance(action, Reset):
        return None
    for tier, old, new in (("device", before.device, after.device), ("host", before.host, after.host)):
        if old.keys == new.keys:
            continue
        for block, key in enumerate(old.keys):
            if key and new.keys[block] != key and old.refs[block] and not _is_withdrawn(before, action, tier, block):
                name = setting.key_names[key - 1]
                return f"{tier} block {block} lost its key {name!r} while it had {old.refs[block]} references"
    return None


def _is_withdrawn(before: State, action: Action, tier: str, block: int) -> bool:
    """A load has just failed to read the host block: nobody is to hit it again (vLLM PR 49328)."""
    return tier == "host" and any(
        job.pairs[position].source == block
        for job in reported_now(before, action)
        if job.direction == LOAD and job.view == LIVE
        for position in failed_positions(job)
    )


PROPERTY = Property(
    "pinned-is-not-evicted",
    "A block with references is not given to anybody else, and keeps its key until a reset, or until a load cannot "
    "read it.",
    on_step=on_step,
)
