"""Events of the prefix caches: whoever replays them knows at any time which keys can be found in which tier.

Routers do, to send a request where its prefix is. So each event is written down by the cache itself, in the very place
where the key becomes findable or ceases to be, and by nobody else: an event of what is only planned, or none of what
happened on the side, would send requests where nothing is.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kvoffload.ids import Key
from kvoffload.operations import Tier
from kvoffload.plain import Plain


class BlockStored(NamedTuple):
    """The key can be found in this tier from now on, and could not before."""

    tier: Tier
    key: Key


class BlockRemoved(NamedTuple):
    """The key can no longer be found in this tier."""

    tier: Tier
    key: Key


class AllCleared(NamedTuple):
    """No key can be found in this tier."""

    tier: Tier


CacheEvent = BlockStored | BlockRemoved | AllCleared


@dataclass(slots=True)
class Journal(Plain):
    """Where the cache of one tier writes down what it does. `events` is shared by all tiers, so that order is kept."""

    tier: Tier
    events: list[CacheEvent]

    def stored(self, key: Key) -> None:
        self.events.append(BlockStored(self.tier, key))

    def removed(self, key: Key) -> None:
        self.events.append(BlockRemoved(self.tier, key))

    def cleared(self) -> None:
        self.events.append(AllCleared(self.tier))


def journal_of(tier: Tier, events: list[CacheEvent] | None) -> Journal | None:
    """The journal of a tier; None if nobody wants events."""
    return None if events is None else Journal(tier, events)
