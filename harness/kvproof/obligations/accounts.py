"""What an engine's books, and what its workers hold, owe each other: the first place where they do not agree.

It imports nothing of kvproof but what stands in tests that need none, too (`kvproof.targets.alone`).
"""

from collections import Counter
from typing import NamedTuple

from kvproof.obligations.books import Books, Pool
from kvproof.obligations.workers import AGES, Copy, Workers


class Miscounted(NamedTuple):
    """A block of a tier that is in the free queue `times` times, with so many references."""

    block: int
    references: int
    times: int


class Overdrawn(NamedTuple):
    """A device block that is in more tables than it has references."""

    block: int
    references: int
    tables: int


class Unowned(NamedTuple):
    """A block without an owner that an unreported copy reads or writes."""

    tier: str
    block: int
    copy: Copy


class Mispublished(NamedTuple):
    """A host block that can be hit, and of which a worker holds something else. held: its contents there; aged: it is
    what its key says, computed by other weights."""

    block: int
    worker: int
    held: list[int]
    aged: bool


def held(books: Books) -> list[tuple[str, int, int]]:
    """(tier, block, references) of every block that somebody holds."""
    return [
        (tier, block, count)
        for tier, pool in (("device", books.device), ("host", books.host))
        if pool is not None
        for block, count in enumerate(pool.refs)
        if count and block not in pool.permanent
    ]


def miscounted(pool: Pool | None) -> Miscounted | None:
    """A block is free if and only if it has no owner, once."""
    if pool is None:
        return None
    idle = [block for block, count in enumerate(pool.refs) if not count and block not in pool.permanent]
    if min(pool.refs, default=0) >= 0 and sorted(pool.free) == idle:
        return None  # as nearly always: asked after every command
    queued = Counter(pool.free)
    for block, count in enumerate(pool.refs):
        if block not in pool.permanent and (count < 0 or queued[block] != (count == 0)):
            return Miscounted(block, count, queued[block])
    return None


def overdrawn(books: Books) -> Overdrawn | None:
    """A device block has a reference for every table that it is in."""
    pool = books.device
    if pool is None:
        return None
    for block, count in Counter([block for _, table in books.tables for block in table]).items():
        if pool.refs[block] < count and block not in pool.permanent:
            return Overdrawn(block, pool.refs[block], count)
    return None


def unowned(workers: Workers, books: Books) -> Unowned | None:
    """Under pinning the blocks of a copy have an owner until it is reported."""
    for rank in workers.ranks:
        for copy in (*rank.store, *rank.load, *rank.copied):
            device, host = (0, 1) if copy.direction == "store" else (1, 0)
            for pair in copy.pairs:
                for pool, tier, block in ((books.device, "device", pair[device]), (books.host, "host", pair[host])):
                    if pool is not None and not pool.refs[block]:
                        return Unowned(tier, block, copy)
    return None


def mispublished(workers: Workers, books: Books) -> Mispublished | None:
    """What the host would serve, every worker holds, computed by the weights of now."""
    for block, prefixes in books.published or ():
        promised = [prefix * AGES + workers.age for prefix in prefixes]
        for worker, rank in enumerate(workers.ranks):
            contents = rank.host[block]
            if contents != promised:
                aged = [content // AGES for content in contents] == list(prefixes)
                return Mispublished(block, worker, contents, aged)
    return None
