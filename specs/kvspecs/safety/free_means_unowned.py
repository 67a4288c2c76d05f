"""free-means-unowned."""

from kvmodel.block_pool import Pool
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    return _of_pool("device", state.device) or _of_pool("host", state.host) or _of_pool("second", state.second)


def _of_pool(tier: str, pool: Pool) -> Broken:
    if sorted(pool.free) == [block for block, count in enumerate(pool.refs) if not count]:
        return None
    for block, count in enumerate(pool.refs):
        queued = pool.free.count(block)
        if queued != (count == 0):
            return f"{tier} block {block} counts {count} references and stands {queued} times in the free queue"
    return f"the free queue of the {tier} pool holds blocks that do not exist"


PROPERTY = Property(
    "free-means-unowned",
    "The free queue of a pool holds exactly the blocks without references, each once.",
    on_state,
)
