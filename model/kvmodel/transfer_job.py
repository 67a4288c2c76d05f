"""A transfer job: one copy of some blocks between two tiers, on every worker, from its making to its last report.

A store and a load go between device and host. A cascade goes on from the host to the second host tier, and a promotion
comes back from there.
"""

from typing import NamedTuple

from kvmodel.tiers import Tiers, names_device, names_host

NONE = -1

STORE, LOAD, CASCADE, PROMOTION = 1, 2, 3, 4
DIRECTIONS = ("", "store", "load", "cascade", "promotion")
TIERS_OF = (("", ""), ("device", "host"), ("host", "device"), ("host", "second"), ("second", "host"))
"""By direction: the tier that is read, and the tier that is written."""

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

    direction   STORE: device to host. LOAD: host to device. CASCADE: host to second tier. PROMOTION: second to host
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
    """What a complete job has brought over: of any but a load, every pair that failed nowhere.

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
    """What it carries could be hit in one of these tiers once it is complete. The second tier goes with the host."""
    return names_device(tiers) if job.direction == LOAD else names_host(tiers)


def is_below_host(job: Job) -> bool:
    """It goes between the host and the second tier, and touches no device block."""
    return job.direction >= CASCADE


def holds_block_of(job: Job, tiers: Tiers) -> bool:
    """It has a block of one of these tiers among its sources or destinations."""
    return names_host(tiers) or not is_below_host(job)


def is_settled(job: Job) -> bool:
    """Every worker has copied it and has reported it, or never will."""
    return min(job.progress) >= REPORTED


def is_reported_by_all(job: Job) -> bool:
    return job.progress.count(REPORTED) == len(job.progress)
