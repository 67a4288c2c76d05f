"""events-tell-what-can-be-hit."""

from kvmodel.prefix_cache import findable
from kvmodel.setting import Setting
from kvmodel.state import State
from kvspecs.property import Broken, Property

TIERS = ("device", "host", "second")


def on_events(setting: Setting, state: State, announced: tuple[tuple[int, ...], ...]) -> Broken:
    """Judges what a target has announced up to this state.

    announced: by tier the keys that a consumer of its events has, in order: one that was stored twice is there twice,
    one that was removed and was not there is there as its negative. Where the second tier is left out, nothing was
    announced of it.
    """
    pools = (state.device, state.host, state.second)
    for tier, pool, told in zip(TIERS, pools, (*announced, ())[: len(TIERS)], strict=True):
        right = findable(pool)
        for key in sorted(set(told) | set(right), key=abs):
            name = setting.key_names[abs(key) - 1]
            if key < 0:
                return f"an event says that {name!r} was removed from the {tier}, and none that it was stored before"
            if told.count(key) > 1:
                return (
                    f"{told.count(key)} events say that {name!r} was stored on the {tier}, and none that it was removed"
                )
            if key not in right:
                return f"the events say that {name!r} can be hit on the {tier}, and it cannot"
            if key not in told:
                return f"{name!r} can be hit on the {tier}, and the events do not say so"
    return None


PROPERTY = Property(
    "events-tell-what-can-be-hit",
    "Whoever replays the stored and removed events of a tier has exactly the keys that can be hit there.",
)
"""Decided by `on_events`, of what a target announces: the machine itself announces nothing."""
