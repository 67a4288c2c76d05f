"""Bugs of the event stream: what routers are told beside what can be found."""

from tests.bugs.bug import Bug

_PROPERTY = "events-tell-what-can-be-hit"

BUGS = (
    Bug(
        id="event-missing-at-eviction",
        kind="event",
        mechanism="A block that is evicted announces nothing: routers go on sending requests for it.",
        source="planted",
        file="prefix_cache.py",
        old="                    journal.removed(key)\n",
        new="                    pass\n",
        discipline="pinning",
        variant="s1",
        property=_PROPERTY,
        commands=7,
    ),
    Bug(
        id="event-missing-at-reset",
        kind="event",
        mechanism="A reset announces nothing: routers take an empty cache for a full one.",
        source="planted",
        file="prefix_cache.py",
        old="            self.journal.cleared()\n",
        new="            pass\n",
        discipline="pinning",
        variant="s1",
        property=_PROPERTY,
        commands=5,
    ),
    Bug(
        id="event-of-the-wrong-tier-at-reset",
        kind="event",
        mechanism="Whichever tier is reset, it is the device that is said to be empty.",
        source="planted",
        file="cache_events.py",
        old="AllCleared(self.tier)",
        new="AllCleared(Tier.DEVICE)",
        discipline="fencing",
        variant="s1",
        property=_PROPERTY,
        commands=6,
    ),
    Bug(
        id="event-before-the-copy",
        kind="event",
        mechanism="A store is announced when it is launched: until it is complete nothing can be hit there.",
        source="planted",
        file="connectors/transfers.py",
        old="        self.storing.update([pair.key for pair in pairs])\n",
        new="""        self.storing.update([pair.key for pair in pairs])
        for pair in pairs:
            if self.host.cache.journal is not None:
                self.host.cache.journal.stored(pair.key)
""",
        discipline="pinning",
        variant="s1",
        property=_PROPERTY,
        commands=2,
    ),
    Bug(
        id="event-of-a-second-copy",
        kind="event",
        mechanism="A key that is published again is announced again, and is removed once: to routers it stays.",
        source="planted",
        file="prefix_cache.py",
        old="            if key in blocks:\n",
        new="""            if key in blocks:
                if journal is not None:
                    journal.stored(key)
""",
        discipline="pinning",
        variant="s1,prompts=a+a,host=2,resets=0,aborts=no",
        property=_PROPERTY,
        commands=5,
    ),
    Bug(
        id="event-of-a-copy-that-is-not-the-last",
        kind="event",
        mechanism="The second block computed for a key is not kept for it, and the key is announced as removed.",
        source="planted",
        file="prefix_cache.py",
        old="            if key in blocks:\n",
        new="""            if key in blocks:
                if journal is not None and blocks[key] != block:
                    journal.removed(key)
""",
        discipline="pinning",
        variant="s1,prompts=a+a,host=2,resets=0,aborts=no",
        property=_PROPERTY,
        commands=5,
    ),
    Bug(
        id="events-taken-twice",
        kind="event",
        mechanism="Events that were taken are handed out again with the next ones.",
        source="planted",
        file="engine.py",
        old="        self.events.clear()\n        return taken\n",
        new="        return taken\n",
        discipline="pinning",
        variant="s1",
        property=_PROPERTY,
        commands=5,
    ),
)
