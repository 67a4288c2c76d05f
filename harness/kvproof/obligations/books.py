"""An engine's own books, as an adapter reads them.

It imports nothing of kvproof: it stands in tests that need none (`kvproof.targets.alone`).
"""

from typing import NamedTuple

Blocks = tuple[int, ...]


class Unreadable(Exception):
    """The adapter does not know this engine, by the name of what it misses: no violation, but an error."""


class Pool(NamedTuple):
    """One tier's blocks as the engine counts them. free: its free queue, in order; permanent: blocks that are never
    given to anybody (a null block)."""

    refs: Blocks
    free: Blocks
    permanent: frozenset[int] = frozenset()


class Books(NamedTuple):
    """What the engine's own books say now.

    device, host  its pools; None: not shown
    tables     (request, its device blocks) of every request that holds any
    unfinished requests that the client still waits for
    busy       whether the engine would go on stepping by itself
    deferred   requests whose last lookup the engine put off
    published  (host block, name of the prefix up to each of its tokens) of everything that the host tier would serve;
               None: not shown
    """

    device: Pool | None
    host: Pool | None
    tables: tuple[tuple[int, Blocks], ...]
    unfinished: Blocks
    busy: bool
    published: tuple[tuple[int, tuple[int, ...]], ...] | None = None
    deferred: Blocks = ()
