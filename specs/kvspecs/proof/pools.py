"""What an action does to a pool of blocks, for all of them at once: `kvmodel.block_pool`, without an order."""

from typing import Any, NamedTuple

from kvspecs.proof.action import Clause
from kvspecs.proof.logic import Term, Unary, all_of, one, pick
from kvspecs.proof.state import State, Vocabulary


class Tier(NamedTuple):
    """References, keys, and how often each block stands in the free queue."""

    refs: Unary
    key: Unary
    queued: Unary

    def device(self) -> dict[str, Any]:
        """As tables of a state."""
        return {"device_refs": self.refs, "device_key": self.key, "device_queued": self.queued}

    def host(self) -> dict[str, Any]:
        return {"host_refs": self.refs, "host_key": self.key, "host_queued": self.queued}


def device(s: State) -> Tier:
    return Tier(s.device_refs, s.device_key, s.device_queued)


def host(s: State) -> Tier:
    return Tier(s.host_refs, s.host_key, s.host_queued)


def released(tier: Tier, times: Unary) -> Tier:
    """So many references less on each block; one that loses its last goes to the free queue."""
    return tier._replace(
        refs=lambda b: tier.refs(b) - times(b),
        queued=lambda b: tier.queued(b) + one(all_of(times(b) > 0, tier.refs(b) == times(b))),
    )


def touched(tier: Tier, chosen: Unary) -> Tier:
    """One reference more on each chosen block; a free one leaves the free queue."""
    return tier._replace(
        refs=lambda b: tier.refs(b) + one(chosen(b)),
        queued=lambda b: tier.queued(b) - one(all_of(chosen(b), tier.refs(b) == 0)),
    )


def shared(tier: Tier, times: Unary) -> Tier:
    """So many references more on each block, which has some."""
    return tier._replace(refs=lambda b: tier.refs(b) + times(b))


def taken(w: Vocabulary, tier: Tier, chosen: Unary) -> Tier:
    """Each chosen block gets its first reference, loses its key, and leaves the free queue."""
    return Tier(
        refs=lambda b: pick(chosen(b), 1, tier.refs(b)),
        key=lambda b: pick(chosen(b), w.none, tier.key(b)),
        queued=lambda b: tier.queued(b) - one(chosen(b)),
    )


def cleared(w: Vocabulary, tier: Tier, named: Term) -> Tier:
    """No key can be hit any more, if this tier is named."""
    return tier._replace(key=lambda b: pick(named, w.none, tier.key(b)))


def enough(tier: Tier, sort: str, times: Unary) -> Clause:
    """What is released is referenced: otherwise it is a double free, and `kvmodel.block_pool.release` refuses it."""
    return Clause(f"no-double-free-{'device' if sort == 'D' else 'host'}", sort, lambda b: times(b) <= tier.refs(b))
