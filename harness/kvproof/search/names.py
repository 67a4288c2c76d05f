"""Names in counterexamples: a path of canonical states, told again in one consistent naming."""

from kvmodel import Action, Machine
from kvmodel import actions as act
from kvmodel.rules.report import retired_job
from kvproof.search.canonical import Renaming, canonical_with


def with_names(action: Action, renaming: Renaming) -> Action:
    """An action of the canonical state, in the names of the state that `renaming` made canonical."""
    match action:
        case act.Run(worker, stream):
            return act.Run(renaming.workers[worker], stream)
        case act.FailCopy(worker, stream, position):
            return act.FailCopy(renaming.workers[worker], stream, position)
        case act.Die(worker):
            return act.Die(renaming.workers[worker])
        case act.DeclareDead(worker):
            return act.DeclareDead(renaming.workers[worker])
        case act.Expire(job):
            return act.Expire(_old(renaming, job))
        case act.Report(worker, job):
            return act.Report(renaming.workers[worker], _old(renaming, job))
        case act.LoseReport(worker, job):
            return act.LoseReport(renaming.workers[worker], _old(renaming, job))
        case act.DuplicateReport(worker, job):
            return act.DuplicateReport(renaming.workers[worker], _old(renaming, job))
        case act.ReportMark(worker, stream, mark):
            return act.ReportMark(renaming.workers[worker], stream, _old(renaming, mark))
        case act.RepeatMark(worker, stream, which):
            return act.RepeatMark(renaming.workers[worker], stream, which)
        case act.LoseMark(worker, stream):
            return act.LoseMark(renaming.workers[worker], stream)
        case _:
            return action


def _old(renaming: Renaming, job: int) -> int:
    return next((old for old, new in renaming.jobs.items() if new == job), -1)


def retold(machine: Machine, path: list[Action]) -> list[Action]:
    """The same path from the initial state on, without renaming between the steps. The last step is not taken: it may
    be one that the rules refuse."""
    contract = machine.setting.contract
    state = machine.initial()
    told: list[Action] = []
    for position, action in enumerate(path):
        _, renaming = canonical_with(contract, state)
        named = with_names(action, renaming)
        if isinstance(named, act.DuplicateReport) and named.job < 0:
            retired = retired_job(state)
            assert retired is not None
            named = act.DuplicateReport(named.worker, retired)
        told.append(named)
        if position < len(path) - 1:
            state = machine.step(state, named)
    return told
