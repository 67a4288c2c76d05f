"""The control state of kvoffload in canonical names: what tells two nodes of the product search apart.

Everything reachable from the engine and the ledger is in it, or in the view, which is compared with the machine after
every command and so adds nothing. (Cache events are taken after every command; what they add up to is in the view.)
FIELDS lists every field of every class: one that is not listed here stops the check, since a hidden variable that is
left out is exactly how a bug hides (vLLM PR 48102). So does a part of a class that derives from one of these and has
more.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import takewhile

from kvoffload.block_pool import BlockPool
from kvoffload.cache_events import Journal
from kvoffload.completions.marks import StreamMark, WorkerMarks
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.connectors.pinning import PinningConnector
from kvoffload.connectors.transfers import TransferConnector
from kvoffload.devices.ledger import Ledger, LedgerWorker
from kvoffload.engine import Engine
from kvoffload.launched_step import LaunchedShare, LaunchedStep
from kvoffload.operations import Compute, Copy
from kvoffload.prefix_cache import PrefixCache
from kvoffload.request import Request
from kvoffload.scheduler import Scheduler
from kvoffload.transfer_job import TransferJob
from kvproof.search.canonical import Renaming, ranks_of

_CONNECTOR = {"config", "host", "device", "jobs", "next_job", "queued", "storing", "second"}

FIELDS: dict[type, set[str]] = {
    Engine: {"config", "scheduler", "connector", "statistics", "events"},
    Scheduler: {"device", "connector", "requests", "depth", "partial", "window", "pipeline", "next_step", "generation",
                "shut"},
    PinningConnector: _CONNECTOR,
    FencingConnector: _CONNECTOR,
    BlockPool: {"counts", "queue", "cache"},
    PrefixCache: {"keys", "blocks", "journal"},
    Journal: {"tier", "events"},
    Request: {
        "id", "prompt", "total", "phase", "table", "computed", "ahead", "stored", "generation", "pins", "jobs",
        "returns", "promoted",
    },
    TransferJob: {"id", "direction", "request", "pairs", "awaiting", "launched", "flush_ordered", "state", "failed"},
    LaunchedStep: {"step", "shares"},
    LaunchedShare: {"first", "blocks", "left"},
    Ledger: {"workers", "second_blocks", "gated", "misreads", "shards"},
    WorkerMarks: {"stores", "loads"},
    StreamMark: {"pending", "ahead", "failed", "mark"},
    LedgerWorker: {
        "device", "host", "second", "computes", "stores", "loads", "cascades", "promotions", "unrun", "computed",
        "finished", "failed", "dead",
    },
}  # fmt: skip

_LISTED = frozenset(FIELDS)


class UnknownField(TypeError):
    """kvoffload has state that this adapter does not know of, so that the product search could overlook it."""


def check_fields() -> None:
    """Raises UnknownField unless FIELDS lists exactly the fields of kvoffload's classes, which can have no others."""
    for cls, known in FIELDS.items():
        present = {field.name for field in fields(cls)} | ({"__dict__"} if cls.__dictoffset__ else set[str]())
        if present != known:
            odd = sorted(present ^ known)[0]
            raise UnknownField(
                f"{cls.__name__}.{odd} is in one of kvoffload and kvproof.targets.kvoffload_control alone"
            )


check_fields()


def hidden_in(part: object) -> tuple[str, ...]:
    """What a part of kvoffload has beyond the class in FIELDS that it is of, or derives from, by name."""
    kind: type = type(part)
    return () if kind in FIELDS else (*_slots_beyond(kind), *getattr(part, "__dict__", ()))


@cache
def _slots_beyond(kind: type) -> tuple[str, ...]:
    beyond = takewhile(lambda base: base not in FIELDS, kind.__mro__)
    return tuple([name for base in beyond for name in base.__dict__.get("__slots__", ()) if not name.startswith("__")])


def _check_nothing_hidden(engine: Engine, ledger: Ledger) -> None:
    scheduler, connector = engine.scheduler, engine.connector
    device, host, second = scheduler.device, connector.host, connector.second
    parts: list[object] = [engine, scheduler, connector, ledger, device, host, second]
    parts += (device.cache, host.cache, second.cache)
    parts += [*scheduler.requests.values(), *connector.jobs.values(), *ledger.shards]
    if not _LISTED.issuperset(map(type, parts)):
        for part in parts:
            if hidden := hidden_in(part):
                name = f"{type(part).__name__}.{hidden[0]}"
                raise UnknownField(f"{name} is not known to kvproof.targets.kvoffload_control")


Late = Mapping[int, frozenset[int]]
"""Jobs with reports that are to come, and of which workers."""

_NONE_LATE: Late = {}


def canonical(
    engine: Engine, ledger: Ledger, marks: Sequence[WorkerMarks], renaming: Renaming, late: Late = _NONE_LATE
) -> Hashable:
    """The whole hidden state; equal for two engines if and only if they differ in names, statistics, and what the view
    shows alone. marks: of the workers, where they report any. late: reports to be left out, as if they had come.

    Raises UnknownField for a part whose class has more than is listed in FIELDS.
    """
    _check_nothing_hidden(engine, ledger)
    scheduler, connector = engine.scheduler, engine.connector
    jobs = [job for job in connector.jobs.values() if job.id not in late or _awaited(job, late)]
    names = _job_names(engine, ledger, marks, renaming, jobs, late)

    def job_name(job: int) -> int:
        return names.get(job, NOWHERE)

    rank = ranks_of(renaming)
    return (
        _pool(scheduler.device, renaming.device),
        _pool(connector.host, renaming.host),
        _pool(connector.second, renaming.second) if connector.second.counts else (),
        connector.device is scheduler.device,
        scheduler.shut,
        tuple(
            [
                (request.id, request.ahead,
                 scheduler.generation - request.generation if request.generation >= 0 else -1,
                 tuple(sorted([job_name(job) for job in request.jobs])))
                for request in scheduler.requests.values()
            ]
        ),
        tuple([scheduler.next_step - step.step for step in scheduler.pipeline]),
        tuple(
            sorted(
                [
                    (
                        job_name(job.id),
                        job.direction,
                        job.request,
                        _pairs(job, renaming),
                        sum([1 << rank[worker] for worker in _awaited(job, late)]),
                        job.launched,
                        job.flush_ordered,
                        job.state,
                        tuple(sorted(job.failed)),
                    )
                    for job in jobs
                ],
                key=lambda row: row[0],
            )
        ),
        tuple([job_name(job) for job in connector.queued]),
        tuple(sorted(connector.storing)),
        tuple(
            [
                _shard(shard, scheduler, renaming, names, _finished(shard, worker, late))
                for worker in renaming.workers
                for shard in (ledger.shards[worker],)
            ]
        ),
        tuple([_marks(marks[worker], connector, names) for worker in renaming.workers]) if marks else (),
    )  # fmt: skip


def known_of(engine: Engine, ledger: Ledger, renaming: Renaming, late: Late) -> tuple[Hashable, ...]:
    """What kvoffload knows of each of these jobs, whose late reports `canonical` leaves out."""
    rank = ranks_of(renaming)
    found: list[Hashable] = []
    for number, workers in late.items():
        job = engine.connector.jobs.get(number)
        shards = [(worker, ledger.shards[worker]) for worker in sorted(workers)]
        failed = sorted([(rank[worker], shard.failed[number]) for worker, shard in shards if number in shard.failed])
        unheard = [rank[worker] for worker, shard in shards if number not in shard.finished]
        row = None
        if job is not None:
            row = (job.direction, job.request, _pairs(job, renaming), job.launched, job.flush_ordered, job.state,
                   tuple(sorted(job.failed)))  # fmt: skip
            unheard += [rank[worker] for worker in workers - job.awaiting]
        found.append((row, tuple(failed), tuple(sorted(unheard))))
    return tuple(found)


def _awaited(job: TransferJob, late: Late) -> Collection[int]:
    """Workers whose reports of the job are to come, but for those that are left out."""
    return job.awaiting - late[job.id] if job.id in late else job.awaiting


def _finished(shard: LedgerWorker, worker: int, late: Late) -> list[int]:
    """Jobs whose reports are to come from a worker, but for those that are left out."""
    return [job for job in shard.finished if worker not in late.get(job, ())] if late else shard.finished


NOWHERE = -(1 << 30)
"""The name of a job id that no table, request or stream holds."""


def _job_names(
    engine: Engine,
    ledger: Ledger,
    marks: Sequence[WorkerMarks],
    renaming: Renaming,
    jobs: Sequence[TransferJob],
    late: Late,
) -> dict[int, int]:
    """Names of all job ids that anything holds: the machine's for those in its table; those that left it, and that
    kvoffload has not let go of, are -1, -2, ... from the youngest on. Ages would do as well, and never recur."""
    held = {job.id for job in jobs}
    for request in engine.scheduler.requests.values():
        held |= request.jobs
    for worker, shard in enumerate(ledger.shards):
        if not shard.dead:
            held |= shard.unrun
            held.update(_finished(shard, worker, late))
    for told in marks:
        held.update(told.stores.pending, told.loads.pending)
    gone = sorted(held - renaming.jobs.keys(), reverse=True)
    return {**renaming.jobs, **{job: -1 - position for position, job in enumerate(gone)}}


def _pool(pool: BlockPool, names: list[int]) -> Hashable:
    """The map of keys from the other side. Counts, keys and the queue are in the view."""
    return tuple(sorted([(key, names[block]) for key, block in pool.cache.blocks.items()]))


def _pairs(job: TransferJob, renaming: Renaming) -> tuple[tuple[int, int, int], ...]:
    if job.direction == "STORE":
        source, target = renaming.device, renaming.host
    elif job.direction == "LOAD":
        source, target = renaming.host, renaming.device
    elif job.direction == "CASCADE":
        source, target = renaming.host, renaming.second
    else:
        source, target = renaming.second, renaming.host
    return tuple([(source[pair.source], target[pair.destination], pair.key) for pair in job.pairs])


def _shard(
    shard: LedgerWorker, scheduler: Scheduler, renaming: Renaming, names: dict[int, int], finished: Sequence[int]
) -> Hashable:
    """Operations that have not run, with those of their waits that matter still. What a dead worker has is of no
    consequence, but for the steps that it has not computed: those are in the view."""
    if shard.dead:
        return ()
    generation = scheduler.generation

    def waits(jobs: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted([names.get(job, NOWHERE) for job in jobs if job in shard.unrun]))

    def copy(operation: Copy) -> Hashable:
        return (
            names.get(operation.job, NOWHERE),
            max(operation.step - shard.computed, -1),
            waits(operation.jobs),
        )

    def compute(operation: Compute) -> Hashable:
        device = renaming.device
        return (
            tuple(
                [
                    (
                        tuple([(device[block], key, generation - of) for block, (key, of) in share.reads]),
                        tuple([(device[block], key, generation - of) for block, (key, of) in share.writes]),
                    )
                    for share in operation.shares
                ]
            ),
            waits(operation.jobs),
        )

    return (
        scheduler.next_step - shard.computed,
        tuple([compute(operation) for operation in shard.computes]),
        tuple([copy(operation) for operation in shard.stores]),
        tuple([copy(operation) for operation in shard.loads]),
        tuple([copy(operation) for operation in shard.cascades]),
        tuple([copy(operation) for operation in shard.promotions]),
        tuple(sorted([(names.get(job, NOWHERE), shard.failed.get(job, ())) for job in finished])),
    )


def _marks(marks: WorkerMarks, connector: TransferConnector, names: dict[int, int]) -> Hashable:
    """Of each stream what its mark has not passed, which jobs in the scheduler's table it has, and how far it is beyond
    all that were issued. Its number is a name: what matters is what it is compared with."""
    return tuple(
        [
            (
                tuple([names.get(job, NOWHERE) for job in stream.pending]),
                tuple(sorted([names.get(job, NOWHERE) for job in stream.ahead])),
                tuple(sorted([(names.get(job, NOWHERE), failed) for job, failed in stream.failed.items()])),
                sum([job.id <= stream.mark and job.direction == direction for job in connector.jobs.values()]),
                max(stream.mark - connector.next_job + 1, 0),
            )
            for stream, direction in ((marks.stores, "STORE"), (marks.loads, "LOAD"))
        ]
    )
