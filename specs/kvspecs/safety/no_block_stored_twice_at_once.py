"""no-block-stored-twice-at-once."""

from kvmodel.setting import Setting
from kvmodel.state import State, pool_of
from kvmodel.transfer_job import LIVE, LOAD, TIERS_OF
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    seen: set[tuple[str, int]] = set()
    for job in state.jobs:
        if job.direction == LOAD or job.view != LIVE:
            continue
        tier = TIERS_OF[job.direction][1]
        there = pool_of(state, tier).keys
        for pair in job.pairs:
            name = setting.key_names[pair.key - 1]
            if (tier, pair.key) in seen:
                return f"two live jobs carry {name!r} to the {tier}"
            if pair.key in there:
                return f"job {job.id} carries {name!r}, which the {tier} has"
            seen.add((tier, pair.key))
    return None


PROPERTY = Property(
    "no-block-stored-twice-at-once",
    "A key that is on the host or on the second tier, or on its way there, is not carried there again.",
    on_state,
)
