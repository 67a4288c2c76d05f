"""pinned-is-not-evicted."""

from kvmodel.actions import Action, Reset
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if isinstance(action, Reset):
        return None
    for tier, old, new in (("device", before.device, after.device), ("host", before.host, after.host)):
        if old.keys == new.keys:
            continue
        for block, key in enumerate(old.keys):
            if key and new.keys[block] != key and old.refs[block]:
                name = setting.key_names[key - 1]
                return f"{tier} block {block} lost its key {name!r} while it had {old.refs[block]} references"
    return None


PROPERTY = Property(
    "pinned-is-not-evicted",
    "A block with references is not given to anybody else, and keeps its key until a reset.",
    on_step=on_step,
)
