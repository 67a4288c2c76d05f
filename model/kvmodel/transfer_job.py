"""A transfer job: one copy of some blocks between the tiers, on every worker, from its making to its last report."""

from typing import NamedTuple

from kvmodel.tiers import Tiers, names_device, names_host

NONE = -1

STORE, LOAD = 1, 2
DIRECTIONS = ("", "store", "load")

LIVE, ABANDONED, FORGOTTEN = range(3)
VIEWS = ("LIVE", "ABANDONED", "FORGOTTEN")

QUEUED, LAUNCHED, COPIED, REPORTED, LOST = range(5)
PROGRESS = ("queued", "launched", "copied", "reported", "lost")


class Pair(NamedTuple):
    """One block of a job: copied from `source` to `destination`; it carries the KV of `key`."""

    source: int
    destination: int
    key: int


class Job(NamedTuple):
    """One row of the physical job table.

    direction   STORE: device to host. LOAD: host to device
    request     the request that it belongs to, or NONE
    view        the scheduler's view. LIVE: will publish. ABANDONED: keeps its references, will not publish.
                FORGOTTEN: owns nothing, will not publish, yet its copies may still run.
    progress    of each worker: QUEUED, LAUNCHED, COPIED, REPORTED, or LOST (copied, and no report will ever come)
    flushed     later launches wait for its copies (the fence)
    after_step  the last step whose compute must have run on a worker before this copy runs there, or NONE
    after_jobs  the jobs whose copies must have run on a worker before this copy runs there
    failed      (worker, position) of every pair whose copy failed on a worker; the scheduler learns it with the report
    """

    id: int
    direction: int
    request: int
    pairs: tuple[Pair, ...]
    view: int
    progress: tuple[int, ...]
    flushed: bool = False
    after_step: int = NONE
    after_jobs: tuple[int, ...] = ()
    failed: tuple[tuple[int, int], ...] = ()


def sources(job: Job) -> tuple[int, ...]:
    return tuple([pair.source for pair in job.pairs])


def destinations(job: Job) -> tuple[int, ...]:
    return tuple([pair.destination for pair in job.pairs])


def failed_positions(job: Job) -> frozenset[int]:
    """Pairs that failed on some worker: a block is good only if every worker's part of it is."""
    return frozenset([position for _, position in job.failed])


def intact_pairs(job: Job) -> tuple[Pair, ...]:
    """What a complete job has brought over: of a store, every pair that failed nowhere.

    Of a load, the pairs before the first one that failed: a request computes its blocks in order, so that it computes
    what follows again too, and what is written again may not be hit meanwhile (vLLM PR 50321 truncates likewise).
    """
    if not job.failed:
        return job.pairs
    bad = failed_positions(job)
    if job.direction == LOAD:
        return job.pairs[: min(bad)]
    return tuple([pair for position, pair in enumerate(job.pairs) if position not in bad])


def is_queued(job: Job) -> bool:
    """Made by the scheduler and not yet given to the workers: it has no physical existence."""
    return job.progress[0] == QUEUED


def is_copied_everywhere(job: Job) -> bool:
    return min(job.progress) >= COPIED


def publishes_into(job: Job, tiers: Tiers) -> bool:
    """What it carries could be hit in one of these tiers once it is complete."""
    return names_host(tiers) if job.direction == STORE else names_device(tiers)


def is_settled(job: Job) -> bool:
    """Every worker has copied it and has reported it, or never will."""
    return min(job.progress) >= REPORTED


def is_reported_by_all(job: Job) -> bool:
    return job.progress.count(REPORTED) == len(job.progress)
