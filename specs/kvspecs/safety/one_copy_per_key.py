"""one-copy-per-key."""

from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    for tier, pool in (("device", state.device), ("host", state.host), ("second", state.second)):
        keys = [key for key in pool.keys if key]
        if len(set(keys)) < len(keys):
            key = next(key for key in keys if keys.count(key) > 1)
            return f"{setting.key_names[key - 1]!r} can be hit in two {tier} blocks"
    return None


PROPERTY = Property(
    "one-copy-per-key",
    "In each tier a key can be hit in one block at most.",
    on_state,
    holds_for="kvoffload and strict reading",
)
