"""Between the machine's actions and the commands of traces: the same thing said as a choice, and as an order."""

from kvmodel import actions as act
from kvmodel.state import State
from kvmodel.streams import STREAMS
from kvproof.targets.command import Command

_VERBS: dict[type[act.Action], str] = {
    act.Submit: "submit",
    act.Lookup: "lookup",
    act.ReleaseLookup: "release_lookup",
    act.Admit: "admit",
    act.Grow: "grow",
    act.Wake: "wake",
    act.Preempt: "preempt",
    act.Finish: "finish",
    act.Abort: "abort",
}
_BY_VERB = {verb: kind for kind, verb in _VERBS.items()}


def command_of(action: act.Action) -> Command:
    """The command that makes an engine take this action, choices left to the engine."""
    if type(action) in _VERBS:
        return Command(_VERBS[type(action)], (action[0],))  # type: ignore[misc]
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
        case act.Reset(meaning, requests):
            return Command("reset", (meaning, requests))
        case act.DuplicateReport(worker, job):
            return Command("duplicate_report", (worker, job))
        case act.LoseReport(worker, job):
            return Command("lose_report", (worker, job))
        case act.ForgeReport(worker):
            return Command("forge_report", (worker,))
        case act.FreeTwice(what):
            return Command("free_twice", (what,))
    raise AssertionError(f"no verb for {action!r}")


def matching(action: act.Action, command: Command) -> bool:
    """The command asks for this action. (Whom pressure preempts is the engine's choice, not the command's.)"""
    return command_of(action) == command


def action_named(command: Command, offered: list[act.Action]) -> act.Action | None:
    """The one of the offered actions that the command asks for, or None: the machine does not offer it now."""
    return next((action for action in offered if command_of(action) == command), None)


def reportable(state: State, worker: int) -> tuple[int, ...]:
    """Jobs that a worker has copied and not reported, by id."""
    from kvmodel.transfer_job import COPIED

    return tuple([job.id for job in state.jobs if job.progress[worker] == COPIED])
