"""Announced: which keys the consumer of a target's cache events takes for findable, tier by tier.

The consumer is a strict one: a key that is stored twice is there twice, and one that is removed and was not there is
there as its negative. So what it has is what can be hit if and only if every event came in its time.
"""

Keys = tuple[int, ...]
"""Of one tier, in order."""

Announced = tuple[Keys, ...]
"""By tier: device, host, and the second tier if there is one."""


def with_stored(keys: Keys, key: int) -> Keys:
    return _ordered(keys, -key) if -key in keys else tuple(sorted((*keys, key)))


def with_removed(keys: Keys, key: int) -> Keys:
    return _ordered(keys, key) if key in keys else tuple(sorted((*keys, -key)))


def _ordered(keys: Keys, gone: int) -> Keys:
    left = list(keys)
    left.remove(gone)
    return tuple(left)


def of_tier(announced: Announced, tier: int, keys: Keys) -> Announced:
    """The same, with the keys of one tier replaced."""
    return (*announced[:tier], keys, *announced[tier + 1 :])
