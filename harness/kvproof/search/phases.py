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
        case act.Launch() | act.HandleOutput() | act.Die() | act.DeclareDead() | act.ForgeReport() | act.FreeTwice():
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


YES = ("looked up", "in a step")
"""What the two answers in the phase of a request are about, in their order."""


def worded(label: Label) -> str:
    """A pair of action and phase in words: `Preempt RUNNING, in a step, store LIVE launched/copied`."""
    action, *phase = label
    words: list[str] = []
    answers = iter(YES)
    for part in phase:
        if isinstance(part, bool):
            about = next(answers)
            words += [about] * part
        elif not isinstance(part, tuple):
            words.append(str(part))
        elif part and isinstance(part[0], tuple):
            words += [_in_words(*job) for job in part]
        elif part:  # the last part of a job, after its direction and its view
            words[-2:] = [_in_words(words[-2], words[-1], part)]
    return f"{action} {', '.join(words)}" if words else str(action)


def _in_words(direction: object, view: object, progress: tuple[object, ...]) -> str:
    return f"{direction} {view} {'/'.join(map(str, progress))}"
