"""FailCopy: a copy fails on one worker, wholly or in one block. What it was to write is torn there.

A stream goes on after a failed copy: the worker reports the job like any other, and says what of it failed.
"""

from kvmodel import actions
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.rules import run
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.streams import COMPUTE, oldest_copy
from kvmodel.transfer_job import Job


@guard
def has_several_blocks(job: Job) -> bool:
    """A part of it can fail."""
    return len(job.pairs) > 1


def offered(state: State, runnable: list[tuple[int, int]]) -> list[actions.FailCopy]:
    """Every copy that may run now may fail instead, wholly or in any one of several blocks."""
    found: list[actions.FailCopy] = []
    for worker, stream in runnable:
        job = oldest_copy(state, worker, stream) if stream != COMPUTE else None
        if job is None:
            continue
        if state.faults_left.failures:
            found.append(actions.FailCopy(worker, stream))
        if state.faults_left.partial_failures and has_several_blocks(job):
            found.extend([actions.FailCopy(worker, stream, position) for position in range(len(job.pairs))])
    return found


def check(setting: Setting, state: State, action: actions.FailCopy) -> None:
    worker, stream, position = action
    if not (state.faults_left.failures if position is None else state.faults_left.partial_failures):
        raise Forbidden("faults", "no more copies may fail in this scope")
    run.check(setting, state, actions.Run(worker, stream))
    job = oldest_copy(state, worker, stream) if stream != COMPUTE else None
    if job is None or not (position is None or (has_several_blocks(job) and position < len(job.pairs))):
        raise Forbidden("fail-copy", f"worker {worker} has no copy on that stream of which this part could fail")


def apply(setting: Setting, state: State, action: actions.FailCopy) -> State:
    worker, stream, position = action
    job = oldest_copy(state, worker, stream)
    assert job is not None
    left = state.faults_left
    if position is None:
        left = left._replace(failures=left.failures - 1)
    else:
        left = left._replace(partial_failures=left.partial_failures - 1)
    failing = tuple(range(len(job.pairs))) if position is None else (position,)
    return run.copied(state._replace(faults_left=left), worker, job, failing)
