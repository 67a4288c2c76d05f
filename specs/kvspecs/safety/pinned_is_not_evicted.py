"""pinned-is-not-evicted."""

from kvmodel.actions import Action, DeclareDead, Grow, Reset
from kvmodel.block_pool import HOLE
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import LOAD, PROMOTION
from kvspecs.property import Broken, Property
from kvspecs.safety.completions import failed_now


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if isinstance(action, Reset | DeclareDead):
        return None
    for tier, old, new in (
        ("device", before.device, after.device),
        ("host", before.host, after.host),
        ("second", before.second, after.second),
    ):
        if old.keys == new.keys:
            continue
        for block, key in enumerate(old.keys):
            if key and new.keys[block] != key and old.refs[block]:
                if _is_withdrawn(before, action, after, tier, block) or _is_left(before, action, after, tier, block):
                    continue
                name = setting.key_names[key - 1]
                return f"{tier} block {block} lost its key {name!r} while it had {old.refs[block]} references"
    return None


def _is_withdrawn(before: State, action: Action, after: State, tier: str, block: int) -> bool:
    """A load or a promotion has just failed to read the block: nobody is to hit it again (vLLM PR 49328)."""
    direction = {"host": LOAD, "second": PROMOTION}.get(tier)
    return direction is not None and any(
        job.pairs[position].source == block
        for job, positions in failed_now(before, action, after)
        if job.direction == direction
        for position in positions
    )


def _is_left(before: State, action: Action, after: State, tier: str, block: int) -> bool:
    """A growing request has given up all the references that the block had, and may be the one that takes it."""
    if tier != "device" or not isinstance(action, Grow):
        return False
    old, new = before.requests[action.request].table, after.requests[action.request].table
    left = [position for position, held in enumerate(old) if held == block and new[position] == HOLE]
    return before.device.refs[block] == len(left)


PROPERTY = Property(
    "pinned-is-not-evicted",
    "A block with references is not given to anybody else, and keeps its key until a reset, until the engine shuts "
    "down, or until a load or a promotion cannot read it.",
    on_step=on_step,
)
