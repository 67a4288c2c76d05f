"""Streams: which operations are on their way on each worker, and which of them may run now.

Each worker has a compute stream and one for each direction of copies. Operations of one stream run in the order of
their launches; operations of different streams run in any order that their waits allow.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kvmodel.block_pool import HOLE
from kvmodel.guards import guard
from kvmodel.launched_step import Step
from kvmodel.state import State, is_dead
from kvmodel.transfer_job import CASCADE, COPIED, LAUNCHED, LOAD, NONE, PROMOTION, STORE, TIERS_OF, Job

COMPUTE = 0
STREAMS = ("compute", "store", "load", "cascade", "promotion")
"""By number: a copy's stream has the number of its direction."""

_COPIES = (STORE, LOAD)
_COPIES_OF_ALL = (STORE, LOAD, CASCADE, PROMOTION)


class Access(NamedTuple):
    """One block that a pending operation touches on a worker. tier is `device`, `host` or `second`."""

    tier: str
    block: int
    writes: bool


@guard
def has_computed(state: State, worker: int, step_id: int) -> bool:
    """The worker has run the compute of this step (a step that left the table was run everywhere)."""
    return all(step.ran[worker] for step in state.steps if step.id == step_id)


@guard
def has_copied(state: State, worker: int, job_ids: tuple[int, ...]) -> bool:
    """The worker has run the copies of all these jobs (a job that left the table was copied everywhere)."""
    return all(job.progress[worker] >= COPIED for job in state.jobs if job.id in job_ids)


def oldest_compute(state: State, worker: int) -> Step | None:
    for step in state.steps:
        if not step.ran[worker]:
            return step
    return None


def oldest_copy(state: State, worker: int, direction: int) -> Job | None:
    for job in state.jobs:
        if job.direction == direction and job.progress[worker] == LAUNCHED:
            return job
    return None


def directions(state: State) -> tuple[int, ...]:
    """The directions in which anything is copied here, which are also the streams of copies that there are."""
    return _COPIES_OF_ALL if state.second_contents else _COPIES


def may_compute(state: State, worker: int, step: Step) -> bool:
    """A compute runs once the copies that its launch flushed have run there."""
    return not step.after_jobs or has_copied(state, worker, step.after_jobs)


def may_copy(state: State, worker: int, job: Job) -> bool:
    """A store runs after the compute that writes its source (vLLM PR 46278), a load after the last compute that may
    read what it overwrites (issue 47282), both after the copies that their launch flushed."""
    if job.after_step != NONE and not has_computed(state, worker, job.after_step):
        return False
    return not job.after_jobs or has_copied(state, worker, job.after_jobs)


def runnable(state: State) -> list[tuple[int, int]]:
    """Every (worker, stream) whose oldest operation may run now."""
    found: list[tuple[int, int]] = []
    if not state.steps and not state.jobs:
        return found
    copies = directions(state)
    for worker in range(len(state.device_contents)):
        if state.dead and is_dead(state, worker):
            continue
        step = oldest_compute(state, worker)
        if step is not None and may_compute(state, worker, step):
            found.append((worker, COMPUTE))
        for direction in copies:
            job = oldest_copy(state, worker, direction)
            if job is not None and may_copy(state, worker, job):
                found.append((worker, direction))
    return found


def accesses_of_step(step: Step) -> Iterator[Access]:
    for share in step.shares:
        for position, block in enumerate(share.table):
            if block != HOLE:
                yield Access("device", block, position >= share.start)


def accesses_of_job(job: Job) -> Iterator[Access]:
    source, destination = TIERS_OF[job.direction]
    for pair in job.pairs:
        yield Access(source, pair.source, False)
        yield Access(destination, pair.destination, True)
