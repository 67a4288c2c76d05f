"""no-block-stored-twice-at-once."""

from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import LIVE, STORE
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    seen: set[int] = set()
    for job in state.jobs:
        if job.direction != STORE or job.view != LIVE:
            continue
        for pair in job.pairs:
            name = setting.key_names[pair.key - 1]
            if pair.key in seen:
                return f"two live stores carry {name!r}"
            if pair.key in state.host.keys:
                return f"job {job.id} stores {name!r}, which the host has"
            seen.add(pair.key)
    return None


PROPERTY = Property(
    "no-block-stored-twice-at-once",
    "A key that is on the host, or on its way there, is not stored again.",
    on_state,
)
