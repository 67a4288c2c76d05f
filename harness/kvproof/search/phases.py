"""Phases: in which situation an action is taken, so that walks can cover every pair of action and phase."""

from kvmodel import Action, State
from kvmodel import actions as act
from kvmodel.launched_step import is_in_launched_step
from kvmodel.request import PHASES
from kvmodel.rules.report_mark import covered
from kvmodel.state import job_with
from kvmodel.streams import oldest_copy
from kvmodel.transfer_job import DIRECTIONS, PROGRESS, VIEWS, Job

Label = tuple[object, ...]


def pairs_of(state: State, action: Action) -> list[Label]:
    """The action's name with the phase of what it concerns; one pair for each thing that it concerns.

    Of a request: its phase, whether it looked up, is in a launched step, and the state of the jobs it waits for. Of a
    job: direction, view, and how far each worker is. A launch, an output and a reset concern every request and job.
    """
    name = type(action).__name__
    match action:
        case act.Run(worker, stream):
            job = oldest_copy(state, worker, stream) if stream else None
            return [(name, "compute") if job is None else (name, *_job(job))]
        case act.FailCopy(worker, stream, position):
            job = oldest_copy(state, worker, stream)
            part = "whole" if position is None else "part"
            return [(name, part) if job is None else (name, part, *_job(job))]
        case act.Report(_, number) | act.LoseReport(_, number) | act.DuplicateReport(_, number) | act.Expire(number):
            found = job_with(state, number)
            return [(name, "gone") if found is None else (name, *_job(found))]
        case act.ReportMark(worker, stream, mark):
            return [(name, *_job(job)) for job in covered(state, worker, stream, mark)]
        case act.RepeatMark(_, stream, which):
            return [(name, DIRECTIONS[stream], which)]
        case act.LoseMark(worker, stream):
            return [(name, *_job(job)) for job in covered(state, worker, stream, state.next_job)]
        case act.Reset(meaning, requests, tiers):
            named = () if tiers == "all" else (tiers,)
            return [(name, meaning, requests, *named, *phase) for phase in _all(state)]
        case act.Launch() | act.HandleOutput() | act.Die() | act.ForgeReport() | act.FreeTwice():
            return [(name, *phase) for phase in _all(state)]
        case _:
            return [(name, *_request(state, action.request))]


def _job(job: Job) -> Label:
    return DIRECTIONS[job.direction], VIEWS[job.view], tuple(sorted(PROGRESS[progress] for progress in job.progress))


def _request(state: State, number: int) -> Label:
    request = state.requests[number]
    jobs = [job_with(state, job) for job in request.jobs]
    return (
        PHASES[request.phase],
        request.pins is not None,
        is_in_launched_step(state.steps, number),
        tuple(_job(job) for job in jobs if job is not None),
    )


def _all(state: State) -> set[Label]:
    found: set[Label] = {_request(state, number) for number in range(len(state.requests))}
    return found | {_job(job) for job in state.jobs}
