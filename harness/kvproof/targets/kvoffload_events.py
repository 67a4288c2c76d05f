"""The consumer of kvoffload's cache events: what it has after replaying them."""

from collections.abc import Sequence

from kvoffload.cache_events import AllCleared, BlockRemoved, BlockStored, CacheEvent
from kvoffload.operations import Tier
from kvproof.targets.announced import Announced, of_tier, with_removed, with_stored

_TIERS = {tier: number for number, tier in enumerate(Tier)}


def nothing(second_blocks: int = 0) -> Announced:
    """What was announced when nothing was. second_blocks: of a second tier (count)."""
    return ((),) * (3 if second_blocks else 2)


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
