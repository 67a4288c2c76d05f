"""owners-account-for-references."""

from kvmodel.owners import owners
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    device, host, second = [0] * len(state.device.refs), [0] * len(state.host.refs), [0] * len(state.second.refs)
    for _, holding in owners(setting.contract, state):
        for block in holding.device:
            device[block] += 1
        for block in holding.host:
            host[block] += 1
        for block in holding.second:
            second[block] += 1
    if tuple(device) != state.device.refs:
        return _miscounted(setting, state, "device", device, state.device.refs)
    if tuple(host) != state.host.refs:
        return _miscounted(setting, state, "host", host, state.host.refs)
    if tuple(second) != state.second.refs:
        return _miscounted(setting, state, "second", second, state.second.refs)
    return None


def _miscounted(setting: Setting, state: State, tier: str, owned: list[int], counted: tuple[int, ...]) -> str:
    block = next(block for block, count in enumerate(counted) if count != owned[block])
    names = [name for name, holding in owners(setting.contract, state) if block in holding.of(tier)]
    return (
        f"{tier} block {block} counts {counted[block]} references and has {owned[block]} owners"
        f" ({', '.join(names) or 'none'})"
    )


PROPERTY = Property(
    "owners-account-for-references",
    "Every block counts exactly the references that its named owners hold.",
    on_state,
)
