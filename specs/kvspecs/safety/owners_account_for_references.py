"""owners-account-for-references."""

from kvmodel.owners import Holding, owners
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    device, host = [0] * len(state.device.refs), [0] * len(state.host.refs)
    for _, holding in owners(setting.contract, state):
        for block in holding.device:
            device[block] += 1
        for block in holding.host:
            host[block] += 1
    if tuple(device) != state.device.refs:
        return _miscounted(setting, state, "device", device, state.device.refs)
    if tuple(host) != state.host.refs:
        return _miscounted(setting, state, "host", host, state.host.refs)
    return None


def _miscounted(setting: Setting, state: State, tier: str, owned: list[int], counted: tuple[int, ...]) -> str:
    block = next(block for block, count in enumerate(counted) if count != owned[block])
    names = [name for name, holding in owners(setting.contract, state) if block in _of_tier(holding, tier)]
    return (
        f"{tier} block {block} counts {counted[block]} references and has {owned[block]} owners"
        f" ({', '.join(names) or 'none'})"
    )


def _of_tier(holding: Holding, tier: str) -> tuple[int, ...]:
    return holding.device if tier == "device" else holding.host


PROPERTY = Property(
    "owners-account-for-references",
    "Every block counts exactly the references that its named owners hold.",
    on_state,
)
