"""no-double-free. A rule that frees a free block raises Forbidden under this name (`kvmodel.block_pool.release`)."""

from kvmodel.actions import Action
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    if after.device.refs != before.device.refs or after.device.free != before.device.free:
        return "freeing what is free changed the device pool"
    if after.host.refs != before.host.refs or after.host.free != before.host.free:
        return "freeing what is free changed the host pool"
    if after.second.refs != before.second.refs or after.second.free != before.second.free:
        return "freeing what is free changed the second pool"
    return None


PROPERTY = Property(
    "no-double-free",
    "A block is never freed more often than it was referenced: that is refused, and changes nothing.",
    on_step=on_step,
    actions=frozenset({"FreeTwice"}),
)
