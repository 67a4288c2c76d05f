"""The consumer of kvoffload's cache events: what it has after replaying them."""

from collections.abc import Sequence

from kvoffload.cache_events import AllCleared, BlockRemoved, BlockStored, CacheEvent
from kvoffload.operations import Tier
from kvproof.targets.announced import Announced, of_tier, with_removed, with_stored

NOTHING: Announced = ((), ())

_TIERS = {Tier.DEVICE: 0, Tier.HOST: 1}


def replayed(announced: Announced, events: Sequence[CacheEvent]) -> Announced:
    """What was announced, with these events."""
    for event in events:
        tier = _TIERS[event.tier]
        match event:
            case BlockStored(_, key):
                announced = of_tier(announced, tier, with_stored(announced[tier], key))
            case BlockRemoved(_, key):
                announced = of_tier(announced, tier, with_removed(announced[tier], key))
            case AllCleared():
                announced = of_tier(announced, tier, ())
    return announced
