"""The whole state of the machine: immutable, hashable, and without anything that could be derived."""

from typing import NamedTuple

from kvmodel.block_pool import Pool, empty_pool
from kvmodel.contents import Contents, unwritten
from kvmodel.guards import guard
from kvmodel.launched_step import Step
from kvmodel.request import Request
from kvmodel.scope import Scope
from kvmodel.transfer_job import Job


class Faults(NamedTuple):
    """How often each fault may still occur (count)."""

    duplicates: int
    losses: int
    forgeries: int
    double_frees: int
    failures: int = 0
    partial_failures: int = 0
    expiries: int = 0
    deaths: int = 0


NO_POOL = empty_pool(0)


class State(NamedTuple):
    """One state.

    jobs      the physical job table, by id. A job leaves it only when the scheduler has dropped it *and* every
              worker has reported it: a scheduler that forgets cannot hide physical work.
    second    the second host tier, which has no block and no contents where the scope has none
    steps     launched steps that are unhandled, or that some worker has not run
    next_job  the id of the next job; ids are never rewound (vLLM PR 39726)
    dead      of each worker: it has died; empty while all live
    shut      a worker was declared dead: nobody is served any more
    """

    device: Pool
    host: Pool
    requests: tuple[Request, ...]
    jobs: tuple[Job, ...]
    steps: tuple[Step, ...]
    next_job: int
    device_contents: Contents
    host_contents: Contents
    resets_left: int
    faults_left: Faults
    second: Pool = NO_POOL
    second_contents: Contents = ()
    dead: tuple[bool, ...] = ()
    shut: bool = False


def initial_state(scope: Scope) -> State:
    return State(
        device=empty_pool(scope.device_blocks),
        host=empty_pool(scope.host_blocks),
        requests=(Request(),) * len(scope.prompts),
        jobs=(),
        steps=(),
        next_job=0,
        device_contents=unwritten(scope.workers, scope.device_blocks),
        host_contents=unwritten(scope.workers, scope.host_blocks),
        resets_left=scope.resets,
        faults_left=Faults(
            scope.duplicates,
            scope.losses,
            scope.forgeries,
            scope.double_frees,
            scope.failures,
            scope.partial_failures,
            scope.expiries,
            scope.deaths,
        ),
        second=empty_pool(scope.second_blocks),
        second_contents=unwritten(scope.workers, scope.second_blocks) if scope.second_blocks else (),
    )


@guard
def is_dead(state: State, worker: int) -> bool:
    """It runs and reports nothing any more."""
    return bool(state.dead) and state.dead[worker]


def pool_of(state: State, tier: str) -> Pool:
    """The pool of a tier: `device`, `host` or `second`."""
    if tier == "device":
        return state.device
    return state.host if tier == "host" else state.second


def with_pool(state: State, tier: str, pool: Pool) -> State:
    """The state with the pool of one tier replaced."""
    if tier == "device":
        return state._replace(device=pool)
    return state._replace(host=pool) if tier == "host" else state._replace(second=pool)


def contents_of(state: State, tier: str) -> Contents:
    """What each worker's copy of each block of a tier truly holds."""
    if tier == "device":
        return state.device_contents
    return state.host_contents if tier == "host" else state.second_contents


def with_contents(state: State, tier: str, contents: Contents) -> State:
    """The state with the contents of one tier replaced."""
    if tier == "device":
        return state._replace(device_contents=contents)
    return state._replace(host_contents=contents) if tier == "host" else state._replace(second_contents=contents)


def with_request(state: State, number: int, request: Request) -> tuple[Request, ...]:
    """All requests, the one with this number replaced."""
    return (*state.requests[:number], request, *state.requests[number + 1 :])


def job_with(state: State, job_id: int) -> Job | None:
    """The job with this id, or None when it is not in the table."""
    for job in state.jobs:
        if job.id == job_id:
            return job
    return None


def with_job(jobs: tuple[Job, ...], changed: Job) -> tuple[Job, ...]:
    """The table with one row replaced."""
    return tuple([changed if job.id == changed.id else job for job in jobs])


def without_job(jobs: tuple[Job, ...], job_id: int) -> tuple[Job, ...]:
    return tuple([job for job in jobs if job.id != job_id])
