"""Between the machine's actions and the commands of traces: the same thing said as a choice, and as an order."""

from typing import cast

from kvmodel import Action, Forbidden, Machine, State
from kvmodel import actions as act
from kvmodel.policy import pressure_victim
from kvmodel.scope import Meaning
from kvmodel.streams import STREAMS
from kvmodel.tiers import Tiers
from kvmodel.transfer_job import COPIED
from kvproof.targets.command import Command, tiers_of

_OfRequest = (
    act.Submit
    | act.Lookup
    | act.ReleaseLookup
    | act.Promote
    | act.Admit
    | act.Grow
    | act.Wake
    | act.Preempt
    | act.Finish
    | act.Stop
    | act.Abort
)
"""Actions whose commands name a request and nothing else."""

_VERBS: dict[type[_OfRequest], str] = {
    act.Submit: "submit",
    act.Lookup: "lookup",
    act.ReleaseLookup: "release_lookup",
    act.Promote: "promote",
    act.Admit: "admit",
    act.Grow: "grow",
    act.Wake: "wake",
    act.Preempt: "preempt",
    act.Finish: "finish",
    act.Stop: "stop",
    act.Abort: "abort",
}
_BY_VERB = {verb: kind for kind, verb in _VERBS.items()}


def command_of(action: Action) -> Command:
    """The command that makes an engine take this action, choices left to the engine."""
    if isinstance(action, _OfRequest):
        return Command(_VERBS[type(action)], (action.request,))
    match action:
        case act.Launch():
            return Command("launch")
        case act.Run(worker, stream):
            return Command("run", (worker, STREAMS[stream]))
        case act.Report(worker, job):
            return Command("report", (worker, job))
        case act.HandleOutput():
            return Command("handle_output")
        case act.PreemptUnderPressure():
            return Command("preempt_pressure")
        case act.Reset(meaning, requests, tiers):
            return Command("reset", (meaning, requests) if tiers == "all" else (meaning, requests, tiers))
        case act.Die(worker):
            return Command("die", (worker,))
        case act.DeclareDead(worker):
            return Command("declare_dead", (worker,))
        case act.Expire(job):
            return Command("expire", (job,))
        case act.FailCopy(worker, stream, None):
            return Command("fail_copy", (worker, STREAMS[stream]))
        case act.FailCopy(worker, stream, position):
            assert position is not None
            return Command("fail_block", (worker, STREAMS[stream], position))
        case act.DuplicateReport(worker, job):
            return Command("duplicate_report", (worker, job))
        case act.LoseReport(worker, job):
            return Command("lose_report", (worker, job))
        case act.ReportMark(worker, stream, mark):
            return Command("report_mark", (worker, STREAMS[stream], mark))
        case act.RepeatMark(worker, stream, which):
            return Command("repeat_mark", (worker, STREAMS[stream], which))
        case act.LoseMark(worker, stream):
            return Command("lose_mark", (worker, STREAMS[stream]))
        case act.ForgeReport(worker):
            return Command("forge_report", (worker,))
        case act.FreeTwice(what):
            return Command("free_twice", (what,))
    raise AssertionError(f"no verb for {action!r}")


def action_of(machine: Machine, state: State, command: Command) -> Action | None:
    """The action that a command asks for, choices left open; None for a command that stands for several."""
    verb, args = command
    if verb in _BY_VERB:
        return _BY_VERB[verb](int(args[0]))
    match verb:
        case "launch":
            return act.Launch()
        case "run":
            return act.Run(int(args[0]), STREAMS.index(str(args[1])))
        case "report":
            return act.Report(int(args[0]), int(args[1]))
        case "handle_output":
            return act.HandleOutput()
        case "preempt_pressure":
            victim = pressure_victim(machine.setting, state)
            return None if victim is None else act.PreemptUnderPressure(victim)
        case "reset":
            return act.Reset(cast(Meaning, args[0]), cast(act.Survivors, args[1]), cast(Tiers, tiers_of(command)))
        case "die":
            return act.Die(int(args[0]))
        case "declare_dead":
            return act.DeclareDead(int(args[0]))
        case "expire":
            return act.Expire(int(args[0]))
        case "fail_copy":
            return act.FailCopy(int(args[0]), STREAMS.index(str(args[1])))
        case "fail_block":
            return act.FailCopy(int(args[0]), STREAMS.index(str(args[1])), int(args[2]))
        case "duplicate_report":
            return act.DuplicateReport(int(args[0]), int(args[1]))
        case "lose_report":
            return act.LoseReport(int(args[0]), int(args[1]))
        case "report_mark":
            return act.ReportMark(int(args[0]), STREAMS.index(str(args[1])), int(args[2]))
        case "repeat_mark":
            return act.RepeatMark(int(args[0]), STREAMS.index(str(args[1])), cast(act.Repeated, args[2]))
        case "lose_mark":
            return act.LoseMark(int(args[0]), STREAMS.index(str(args[1])))
        case "forge_report":
            return act.ForgeReport(int(args[0]))
        case "free_twice":
            return act.FreeTwice(cast(act.Freed, args[0]))
    return None


def may_be_given(machine: Machine, state: State, command: Command) -> bool:
    """Whether clients and environments may give this command now: what it asks for is enabled, or may be asked for at
    any time. A target need not be ready for anything else."""
    if command.verb in ("schedule", "report_all", "admit", "run"):
        return True
    action = action_of(machine, state, command)
    return action is not None and any(act.key(action) == act.key(other) for other in machine.actions(state))


_RATIONED = (
    act.Reset
    | act.DuplicateReport
    | act.LoseReport
    | act.RepeatMark
    | act.LoseMark
    | act.ForgeReport
    | act.FreeTwice
    | act.FailCopy
    | act.Die
)
"""Actions of which a scope allows so many and no more."""


def beyond_scope(machine: Machine, state: State, command: Command) -> str:
    """Why this reset or fault cannot happen: the scope has no more of them, or there is nothing that it could be about.
    Empty for everything else, whatever a target may make of it."""
    action = action_of(machine, state, command)
    if isinstance(action, _RATIONED):
        try:
            machine.check(state, action)
        except Forbidden as forbidden:
            return forbidden.why
    return ""


def reportable(state: State, worker: int) -> tuple[int, ...]:
    """Jobs that a worker has copied and not reported, by id."""
    return tuple([job.id for job in state.jobs if job.progress[worker] == COPIED])


def reports_of_all(machine: Machine, state: State, worker: int) -> list[Action]:
    """How a worker reports everything that it has copied: job by job; or the marks of its stores and of its loads."""
    if not machine.setting.contract.marks:
        return [act.Report(worker, job) for job in reportable(state, worker)]
    marks = {job.direction: job.id for job in state.jobs if job.progress[worker] == COPIED}
    return [act.ReportMark(worker, stream, marks[stream]) for stream in sorted(marks)]
