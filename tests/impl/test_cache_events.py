"""The event stream: what a router hears, in order, and what it has when it has heard it."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kvoffload.block_pool import BlockPool
from kvoffload.cache_events import AllCleared, BlockRemoved, BlockStored, CacheEvent, journal_of
from kvoffload.config import Discipline
from kvoffload.engine import Engine
from kvoffload.operations import Stream, Tier

Make = Callable[..., Any]

both = pytest.mark.parametrize("discipline", ["pinning", "fencing"])

A, AB = int.from_bytes(b"a"), int.from_bytes(b"ab")
DEVICE, HOST = Tier.DEVICE, Tier.HOST


def heard(events: list[CacheEvent], index: dict[Tier, set[int]]) -> None:
    """What a router does. A key stored that it has, or removed that it has not, is a KeyError here."""
    for event in events:
        if isinstance(event, AllCleared):
            index[event.tier].clear()
        elif isinstance(event, BlockRemoved):
            index[event.tier].remove(event.key)
        elif event.key in index[event.tier]:
            raise KeyError(event)
        else:
            index[event.tier].add(event.key)


def test_a_cache_writes_down_what_it_does() -> None:
    events: list[CacheEvent] = []
    pool = BlockPool.of_size(2, journal_of(HOST, events))
    pool.cache.publish([(0, 70)])
    pool.cache.publish([(1, 70)])
    assert events == [BlockStored(HOST, 70)]
    pool.take(1)
    assert events[1:] == [BlockRemoved(HOST, 70)]
    pool.take(1)
    assert len(events) == 2
    pool.cache.publish([(1, 71)])
    pool.cache.publish([(1, 72)])
    assert events[2:] == [BlockStored(HOST, 71), BlockRemoved(HOST, 71), BlockStored(HOST, 72)]
    pool.cache.clear()
    assert events[5:] == [AllCleared(HOST)]


@both
def test_a_key_is_announced_when_it_can_be_found(serving: Make, discipline: Discipline) -> None:
    """On the device when the output is handled, on the host when the store is complete: not when either is launched."""
    s = serving(discipline, 4, 4, events=True)
    s.submit(1, "ab")
    s.runtime.schedule()
    assert s.engine.take_events() == ()
    s.run(Stream.COMPUTE)
    s.runtime.handle_output()
    assert s.engine.take_events() == (BlockStored(DEVICE, A), BlockStored(DEVICE, AB))
    assert s.engine.take_events() == ()
    s.drain()
    assert s.engine.take_events() == (BlockStored(HOST, A), BlockStored(HOST, AB))


@both
def test_what_is_evicted_is_removed(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 2, 2, events=True)
    s.submit(1, "ab")
    s.serve()
    s.engine.take_events()
    s.submit(2, "x")
    s.runtime.schedule()
    assert s.engine.take_events() == (BlockRemoved(DEVICE, AB), BlockRemoved(HOST, AB))


@both
def test_a_reset_clears_the_tiers_that_it_names(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4, events=True)
    s.submit(1, "ab")
    s.serve()
    s.engine.take_events()
    s.engine.reset("evict", "keep", "host")
    assert s.engine.take_events() == (AllCleared(HOST),)
    s.engine.reset("evict", "preempt", "device")
    assert s.engine.take_events() == (AllCleared(DEVICE),)
    s.engine.reset("invalidate", "preempt")
    assert sorted(s.engine.take_events()) == [AllCleared(DEVICE), AllCleared(HOST)]


@both
def test_nobody_listens_unless_the_configuration_says_so(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 4, 4)
    s.submit(1, "ab")
    s.serve()
    assert s.cached() == (2, 2)
    assert s.engine.take_events() == ()
    assert s.engine.events is None


@both
def test_a_restarted_scheduler_goes_on_announcing(serving: Make, discipline: Discipline) -> None:
    """What was not taken is handed out after the restart, and both caches write into the one stream still."""
    s = serving(discipline, 4, 4, events=True)
    s.submit(1, "ab")
    s.compute()
    engine: Engine = pickle.loads(pickle.dumps(s.engine))
    assert engine.take_events() == (BlockStored(DEVICE, A), BlockStored(DEVICE, AB))
    engine.reset("invalidate", "preempt")
    assert sorted(engine.take_events()) == [AllCleared(DEVICE), AllCleared(HOST)]


@both
def test_a_router_that_hears_everything_has_what_can_be_found(serving: Make, discipline: Discipline) -> None:
    s = serving(discipline, 5, 3, events=True)
    index: dict[Tier, set[int]] = {DEVICE: set(), HOST: set()}
    removed = 0
    for number, prompt in enumerate(["ab", "abc", "xyz", "ab", "xy", "pqrs", "abc", "xyz", "ab", "pqrs"]):
        s.submit(number, prompt)
        if number in (4, 8):
            s.engine.reset("evict", "preempt", "device")
        while s.engine.has_work():
            s.runtime.step()
            s.drain()
            events = list(s.engine.take_events())
            removed += sum(isinstance(event, BlockRemoved) for event in events)
            heard(events, index)
            assert index[DEVICE] == s.engine.device_pool.cache.blocks.keys()
            assert index[HOST] == s.engine.host_pool.cache.blocks.keys()
    assert removed > 10
