"""ReportMark: a worker's high-water mark reaches the scheduler: it has copied every job of that stream up to an id.

A mark is of one stream: ids are issued to stores and loads alike, and the mark of one says nothing about the other.
Marks are monotone: what one says stays true, so that one that is late or repeated changes nothing. A lost one is healed
by the next: a worker states its mark whenever it reports, whether or not it has moved, and no job waits for ever.
"""

from kvmodel import actions
from kvmodel.forbidden import Forbidden
from kvmodel.rules.report import credited, retired_job
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import COPIED, LOAD, REPORTED, STORE, Job


def covered(state: State, worker: int, stream: int, mark: int) -> tuple[Job, ...]:
    """The jobs that this mark reports for the first time, by id: it may be several, or none."""
    return tuple(
        [job for job in state.jobs if job.direction == stream and job.id <= mark and job.progress[worker] == COPIED]
    )


def is_true(state: State, worker: int, stream: int, mark: int) -> bool:
    """The worker has copied all of the stream up to the mark: a copy that ends early never carries the mark past one
    that still runs."""
    return all(job.progress[worker] >= COPIED for job in state.jobs if job.direction == stream and job.id <= mark)


def offered(setting: Setting, state: State) -> list[actions.Action]:
    """Each mark that a worker has reached and not reported, and the faults. An older one may have been on its way."""
    found: list[actions.Action] = []
    losable: set[tuple[int, int]] = set()
    repeatable: set[tuple[int, int]] = set()
    for job in state.jobs:
        for worker, progress in enumerate(job.progress):
            if progress == COPIED:
                found.append(actions.ReportMark(worker, job.direction, job.id))
                losable.add((worker, job.direction))
            elif progress == REPORTED:
                repeatable.add((worker, job.direction))
    if state.faults_left.losses:
        found.extend([actions.LoseMark(worker, stream) for worker, stream in sorted(losable)])
    if state.faults_left.duplicates:
        if retired_job(state) is not None:
            repeatable |= {(0, STORE), (0, LOAD)}
        for worker, stream in sorted(repeatable):
            found += [actions.RepeatMark(worker, stream, "last"), actions.RepeatMark(worker, stream, "first")]
    return found


def check(setting: Setting, state: State, action: actions.ReportMark) -> None:
    worker, stream, mark = action
    if not setting.contract.marks:
        raise Forbidden("report", f"worker {worker} reports a mark, and the contract has reports of single jobs")
    if not 0 <= mark < state.next_job:
        raise Forbidden("report", f"worker {worker} reports mark {mark}, and no such job was issued")
    if not is_true(state, worker, stream, mark):
        raise Forbidden("report", f"worker {worker} reports mark {mark} and has not copied all jobs up to it")
    if not covered(state, worker, stream, mark):
        raise Forbidden("report", f"worker {worker} reports mark {mark}, up to which it has reported everything")


def apply(setting: Setting, state: State, action: actions.ReportMark) -> State:
    """The jobs are credited one by one in the order of their ids; several may be complete by one mark."""
    worker, stream, mark = action
    for job in covered(state, worker, stream, mark):
        state = credited(setting, state, job, worker)
    return state


def check_lose(setting: Setting, state: State, action: actions.LoseMark) -> None:
    if not state.faults_left.losses:
        raise Forbidden("faults", "no more reports may be lost in this scope")
    if not setting.contract.marks or not covered(state, action.worker, action.stream, state.next_job):
        raise Forbidden("report", f"worker {action.worker} has no mark to report that could be lost")


def lose(setting: Setting, state: State, action: actions.LoseMark) -> State:
    """Nothing arrives. The next mark says all that this one did."""
    return state._replace(faults_left=state.faults_left._replace(losses=state.faults_left.losses - 1))


def check_repeat(setting: Setting, state: State, action: actions.RepeatMark) -> None:
    if not state.faults_left.duplicates:
        raise Forbidden("faults", "no more reports may be repeated in this scope")
    if not setting.contract.marks or action not in offered(setting, state):
        raise Forbidden("duplicate-report", f"worker {action.worker} has reported no mark that could be repeated")


def repeat(setting: Setting, state: State, action: actions.RepeatMark) -> State:
    """A mark that came before changes nothing, however old it is and whatever became of the jobs up to it."""
    return state._replace(faults_left=state.faults_left._replace(duplicates=state.faults_left.duplicates - 1))
