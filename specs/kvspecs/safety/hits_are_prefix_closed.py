"""hits-are-prefix-closed."""

from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    """What a lookup pins is an unbroken prefix of the prompt, and every block of it still has its key."""
    for number, request in enumerate(state.requests):
        if request.pins is None:
            continue
        keys = setting.prompt_keys[number]
        held = [("device", block, state.device) for block in request.pins.device]
        held += [("host", block, state.host) for block in request.pins.host]
        if len(held) > len(keys):
            return f"the lookup of request {number} found more blocks than its prompt has"
        for (tier, block, pool), key in zip(held, keys, strict=False):
            if pool.keys[block] != key:
                name = setting.key_names[key - 1]
                return f"the lookup of request {number} keeps {tier} block {block} for {name!r}, which is not in it"
    return None


PROPERTY = Property(
    "hits-are-prefix-closed",
    "What a lookup finds is an unbroken prefix, first on the device and then on the host.",
    on_state,
)
