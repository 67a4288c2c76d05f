"""Snapshots of kvoffload on the ledger: its whole state as one value that cannot change, and a kvoffload made of that.

The product search takes one after every command and goes on from one before every command, so they are made by hand:
what cannot change is referred to, what can is copied. A state that is not of the shape written down here (a list where
a tuple should be, one set in two places, a pool of another class) is pickled instead, which knows every shape, and
costs several times as much. A class with another field than those named here stops the check before it begins, and a
class of somebody else that has more than the one that it derives from ends the search (`kvoffload_control`).
"""

import pickle
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

from kvoffload.block_pool import BlockPool
from kvoffload.cache_events import CacheEvent, Journal
from kvoffload.completions.marks import StreamMark, WorkerMarks
from kvoffload.config import Config
from kvoffload.connectors.transfers import TransferConnector
from kvoffload.devices.ledger import Ledger, LedgerWorker
from kvoffload.engine import Engine
from kvoffload.launched_step import LaunchedShare, LaunchedStep
from kvoffload.prefix_cache import PrefixCache
from kvoffload.request import Request
from kvoffload.scheduler import Scheduler
from kvoffload.statistics import Statistics
from kvoffload.transfer_job import TransferJob
from kvproof.targets.announced import Announced
from kvproof.targets.kvoffload_control import hidden_in

Flat = tuple[Any, ...]
"""Values that cannot change, in the order in which they are put back."""


class Kvoffload(NamedTuple):
    """All that a running kvoffload consists of. marks: of the workers, where they report any."""

    config: Config
    engine: Engine
    ledger: Ledger
    marks: Sequence[WorkerMarks]
    announced: Announced


class _Unshaped(Exception):
    """A state is not of the shape that is written down here."""


def saved(whole: Kvoffload) -> Hashable:
    """A value that is equal to another one only if nothing tells the two states apart, but for the order of sets."""
    try:
        flat = _flat(whole)
        hash(flat)  # of what could still change there is no hash
    except (_Unshaped, TypeError, AttributeError):
        return pickle.dumps(whole, protocol=5)
    return flat


def restored(config: Config, snapshot: Any) -> Kvoffload:
    """What `saved` of this process was given, with this config, made anew."""
    if isinstance(snapshot, bytes):
        whole: Kvoffload = pickle.loads(snapshot)
        return whole
    return _whole(config, snapshot)


_MADE_ANEW: frozenset[type] = frozenset(
    {
        *(list, set, dict, OrderedDict),
        *(Scheduler, Statistics, BlockPool, PrefixCache, Request, TransferJob, LaunchedStep, LaunchedShare),
        *(Ledger, LedgerWorker, WorkerMarks, StreamMark),
    }
)

_of_statistics = attrgetter(*[field.name for field in fields(Statistics)])
_of_scheduler = attrgetter("depth", "partial", "window", "next_step", "generation", "shut")
_of_request = attrgetter(
    "id", "prompt", "total", "phase", "computed", "ahead", "stored", "generation", "pins", "returns", "promoted"
)
_of_job = attrgetter("id", "direction", "request", "pairs", "launched", "flush_ordered", "state")
_of_share = attrgetter("first", "blocks", "left")
_of_ledger = attrgetter("workers", "second_blocks", "gated")

_changing_in_pool = attrgetter("counts", "queue", "cache", "cache.keys", "cache.blocks")
_changing_in_shard = attrgetter(
    "device", "host", "second", "computes", "stores", "loads", "cascades", "promotions", "unrun", "finished", "failed"
)
_changing_in_mark = attrgetter("pending", "ahead", "failed")


def _flat(whole: Kvoffload) -> Flat:
    config, engine, ledger, marks, announced = whole
    scheduler, connector, events = engine.scheduler, engine.connector, engine.events
    device, host, second = scheduler.device, connector.host, connector.second
    if (
        not (engine.config is config is connector.config)
        or scheduler.connector is not connector
        or events is None
        or not (connector.device is device or connector.device is None)
    ):
        raise _Unshaped
    _check_shapes(whole)
    return (
        (type(engine), _of_statistics(engine.statistics), tuple(events)),
        (type(connector), connector.device is device, connector.next_job),
        (_flat_pool(device, events), _flat_pool(host, events), _flat_pool(second, events)),
        _of_scheduler(scheduler),
        tuple([(number, *_flat_request(request)) for number, request in scheduler.requests.items()]),
        tuple([_flat_step(step) for step in scheduler.pipeline]),
        tuple([(number, *_flat_job(job)) for number, job in connector.jobs.items()]),
        tuple(connector.queued),
        frozenset(connector.storing),
        _of_ledger(ledger),
        tuple(ledger.misreads),
        tuple([_flat_shard(shard) for shard in ledger.shards]),
        tuple([(_flat_mark(worker.stores), _flat_mark(worker.loads)) for worker in marks]),
        announced,
    )


def _whole(config: Config, flat: Flat) -> Kvoffload:
    of_engine, of_connector, pools, plan, requests, pipeline, jobs, queued, storing, sizes, misreads, *rest = flat
    shards, marks, announced = rest
    kind, counts, told = of_engine
    connector_kind, bound, next_job = of_connector
    depth, partial, window, next_step, generation, shut = plan
    events: list[CacheEvent] = list(told)
    device, host, second = [_pool(pool, events) for pool in pools]
    connector: TransferConnector = connector_kind(
        config,
        host,
        device if bound else None,
        {number: _job(of_job, awaiting, failed) for number, of_job, awaiting, failed in jobs},
        next_job,
        list(queued),
        set(storing),
        second,
    )
    scheduler = Scheduler(
        device,
        connector,
        {number: _request(of_request, table, waited_for) for number, of_request, table, waited_for in requests},
        depth,
        partial,
        window,
        [_step(step, shares) for step, shares in pipeline],
        next_step,
        generation,
        shut,
    )
    workers, second_blocks, gated = sizes
    return Kvoffload(
        config,
        kind.of_parts(config, scheduler, connector, Statistics(*counts), events),
        Ledger(workers, second_blocks, gated, list(misreads), [_shard(shard) for shard in shards]),
        [WorkerMarks(_mark(*stores), _mark(*loads)) for stores, loads in marks],
        announced,
    )


def _check_shapes(whole: Kvoffload) -> None:
    """Raises _Unshaped unless everything that can change is held once, and is of the class that it is made anew of."""
    _, engine, ledger, marks, _ = whole
    scheduler, connector = engine.scheduler, engine.connector
    held: list[object] = [scheduler, engine.statistics, engine.events, ledger, ledger.misreads]
    held += (connector.queued, connector.storing)
    for pool in (scheduler.device, connector.host, connector.second):
        held.append(pool)
        held += _changing_in_pool(pool)
    for request in scheduler.requests.values():
        held += (request, request.table, request.jobs)
    for job in connector.jobs.values():
        held += (job, job.awaiting, job.failed)
    for step in scheduler.pipeline:
        held += (step, step.shares, *step.shares.values())
    for shard in ledger.shards:
        held.append(shard)
        held += _changing_in_shard(shard)
    for worker in marks:
        held += (worker, worker.stores, worker.loads)
        held += (*_changing_in_mark(worker.stores), *_changing_in_mark(worker.loads))
    if not _MADE_ANEW.issuperset(map(type, held)) or len(set(map(id, held))) != len(held):
        raise _Unshaped
    if hidden_in(engine) or hidden_in(connector):
        raise _Unshaped


def _flat_pool(pool: BlockPool, events: list[CacheEvent]) -> Flat:
    cache, journal = pool.cache, pool.cache.journal
    if journal is not None and journal.events is not events:
        raise _Unshaped
    tier = None if journal is None else journal.tier
    return tuple(pool.counts), tuple(pool.queue), tuple(cache.keys), tuple(cache.blocks.items()), tier


def _pool(flat: Flat, events: list[CacheEvent]) -> BlockPool:
    counts, queue, keys, blocks, tier = flat
    cache = PrefixCache(list(keys), dict(blocks), None if tier is None else Journal(tier, events))
    return BlockPool(list(counts), OrderedDict.fromkeys(queue), cache)


def _flat_request(request: Request) -> Flat:
    return _of_request(request), tuple(request.table), frozenset(request.jobs)


def _request(flat: Flat, table: tuple[int, ...], jobs: frozenset[int]) -> Request:
    number, prompt, total, phase, computed, ahead, stored, generation, pins, returns, promoted = flat
    return Request(
        number,
        prompt,
        total,
        phase,
        list(table),
        computed,
        ahead,
        stored,
        generation,
        pins,
        set(jobs),
        returns,
        promoted,
    )


def _flat_job(job: TransferJob) -> Flat:
    return _of_job(job), frozenset(job.awaiting), frozenset(job.failed)


def _job(flat: Flat, awaiting: frozenset[int], failed: frozenset[int]) -> TransferJob:
    number, direction, request, pairs, launched, flush_ordered, state = flat
    return TransferJob(number, direction, request, pairs, set(awaiting), launched, flush_ordered, state, set(failed))


def _flat_step(step: LaunchedStep) -> Flat:
    return step.step, tuple([(number, *_of_share(share)) for number, share in step.shares.items()])


def _step(step: int, shares: Flat) -> LaunchedStep:
    return LaunchedStep(step, {number: LaunchedShare(first, blocks, left) for number, first, blocks, left in shares})


def _flat_shard(shard: LedgerWorker) -> Flat:
    return (
        tuple(shard.device),
        tuple(shard.host),
        tuple(shard.computes),
        tuple(shard.stores),
        tuple(shard.loads),
        frozenset(shard.unrun),
        shard.computed,
        tuple(shard.finished),
        tuple(shard.failed.items()),
        tuple(shard.second),
        tuple(shard.cascades),
        tuple(shard.promotions),
        shard.dead,
    )


def _shard(flat: Flat) -> LedgerWorker:
    device, host, computes, stores, loads, unrun, computed, finished, failed, second, cascades, promotions, dead = flat
    return LedgerWorker(
        list(device),
        list(host),
        list(computes),
        list(stores),
        list(loads),
        set(unrun),
        computed,
        list(finished),
        dict(failed),
        list(second),
        list(cascades),
        list(promotions),
        dead,
    )


def _flat_mark(mark: StreamMark) -> Flat:
    return tuple(mark.pending), frozenset(mark.ahead), tuple(mark.failed.items()), mark.mark


def _mark(pending: Flat, ahead: frozenset[int], failed: Flat, mark: int) -> StreamMark:
    return StreamMark(list(pending), set(ahead), dict(failed), mark)
