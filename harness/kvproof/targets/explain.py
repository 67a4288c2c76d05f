"""explain: which actions of the machine did this target just take, and does what is seen of it bear that out?

Shared by all targets. No search: an adapter says what the engine did and chose, `explain` puts the actions of one call
into the contract's order, has the machine judge each, and compares what is seen.
"""

from typing import NamedTuple

from kvmodel import Action, Forbidden, Machine, State, policy
from kvmodel import actions as act
from kvmodel.transfer_job import NONE, is_copied_everywhere
from kvproof.targets import naming
from kvproof.targets.command import Command
from kvproof.targets.naming import Divergence
from kvproof.targets.outcome import Answer, Crashed, Outcome, Refused
from kvproof.targets.view import FIELDS, View, expected
from kvproof.targets.wording import action_of, reportable
from kvspecs.catalogue import NAMES, STEPPING


class Explained(NamedTuple):
    """The actions that account for the command, and the machine's state after them."""

    actions: tuple[Action, ...]
    state: State


ORDER: dict[type[Action], int] = {
    act.Report: 0,
    act.HandleOutput: 1,
    act.Finish: 2,
    act.Wake: 3,
    act.PreemptUnderPressure: 4,
    act.Grow: 4,
    act.Lookup: 5,
    act.ReleaseLookup: 5,
    act.Admit: 5,
    act.Launch: 6,
}
"""In which order one scheduling call takes its actions; those of one rank stay in the engine's order."""

_CRASHES = {
    "DoubleFree": "no-double-free",
    "UnknownBlock": "no-use-after-free",
    "Misread": "reads-what-was-written",
    "Hang": "everything-drains",
}
"""The property that a crash breaks, by the name of its error; any other: the engine does not go on stepping."""

ALWAYS_REFUSED = (act.ForgeReport, act.FreeTwice)
"""Faults that an engine must refuse, by an error."""


def explain(
    machine: Machine, state: State, command: Command, outcome: Outcome, view: View, exact: bool
) -> Explained | Divergence:
    """Account for one command. `state` is the machine's before it, `view` the target's after it.

    exact: the target must also choose as the reference's policy does.
    """
    if isinstance(outcome, Crashed):
        return _crash(command, outcome)
    intended = action_of(machine, state, command)
    if isinstance(outcome, Refused):
        return _refusal(machine, state, command, intended, outcome, view)
    if isinstance(intended, ALWAYS_REFUSED):
        return _accepted(command, intended)
    actions = _actions(state, command, intended, outcome)
    before, after = state, state
    taken: list[Action] = []
    for action in actions:
        action = _bound(machine, after, action)
        try:
            machine.check(after, action)
            chosen = not exact or _as_policy(machine, after, action)
            before, after = after, machine.step(after, action)
        except Forbidden as forbidden:
            return naming.forbidden(machine, after, command, action, forbidden)
        taken.append(action)
        if not chosen:
            return naming.other_choice(machine, before, command, action)
    if exact and command.verb == "schedule":
        left = naming.left_undone(machine, after, taken)
        if left is not None:
            return left
    last = taken[-1] if taken else None
    difference = compared(machine, before, command, last, after, view)
    return difference if difference is not None else Explained(tuple(taken), after)


def compared(
    machine: Machine, before: State, command: Command | None, action: Action | None, after: State, view: View
) -> Divergence | None:
    """The first field in which the target's view differs from the machine's, explained; None if there is none."""
    wanted = expected(after)
    for name, seen, right in zip(FIELDS, view, wanted, strict=True):
        if seen is not None and right is not None and seen != right:
            return naming.difference(machine, before, command, action, after, view, name)
    return None


def _actions(state: State, command: Command, intended: Action | None, outcome: Answer) -> list[Action]:
    if command.verb == "report_all":
        worker = int(command.args[0])
        return [act.Report(worker, job) for job in reportable(state, worker)]
    if command.verb == "schedule":
        return sorted(outcome.observed, key=lambda action: ORDER[type(action)])
    if isinstance(intended, act.Reset):
        return [intended._replace(answer=bool(outcome.value))]
    if intended is None:
        return list(outcome.observed)
    for action in outcome.observed:
        if type(action) is type(intended):
            return [action]
    return [intended]


def _bound(machine: Machine, state: State, action: Action) -> Action:
    """What an engine does not say, and the machine's bookkeeping needs: store cursors, and the flushes that matter."""
    if not isinstance(action, act.Launch) or action.choice is None:
        return action
    unfinished = {job.id for job in state.jobs if not is_copied_everywhere(job)}
    choice = action.choice._replace(flush=tuple([job for job in action.choice.flush if job in unfinished]))
    reference = policy.launching(machine.setting, state)
    if choice.stores == reference.stores:
        return act.Launch(choice._replace(cursors=reference.cursors))
    cursors = []
    for number, pairs in choice.stores:
        if number != NONE:
            table = state.requests[number].table
            cursors.append((number, max(table.index(pair.source) for pair in pairs if pair.source in table) + 1))
    return act.Launch(choice._replace(cursors=tuple(cursors)))


def _as_policy(machine: Machine, state: State, action: Action) -> bool:
    setting = machine.setting
    match action:
        case act.Admit(number, choice):
            return choice is None or choice == policy.admission(setting, state, number)
        case act.Lookup(number, hits):
            return hits is None or hits == tuple(_lookup_hits(machine, state, number))
        case act.Grow(_, blocks):
            return blocks is None or blocks == state.device.free[:1]
        case act.Launch(choice):
            return choice is None or choice == policy.launching(setting, state)
        case act.PreemptUnderPressure(number):
            return number == policy.pressure_victim(setting, state)
        case _:
            return True


def _lookup_hits(machine: Machine, state: State, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    found = policy.hits(machine.setting, state, number)
    return found.device, found.host


def _crash(command: Command, outcome: Crashed) -> Divergence:
    name = outcome.error if outcome.error in NAMES else _CRASHES.get(outcome.error, STEPPING.name)
    sentence = f"The target failed with {outcome.error} on {command}: {outcome.message}."
    return Divergence(
        name,
        sentence,
        ("the command is legal here",),
        (f"{outcome.error}: {outcome.message}",),
        None,
        ("crash", command.verb, outcome.error),
    )


def _refusal(
    machine: Machine, state: State, command: Command, intended: Action | None, outcome: Refused, view: View
) -> Explained | Divergence:
    """A refusal is right where the contract forbids the action, and for misuse; and it must have changed nothing."""
    if isinstance(intended, ALWAYS_REFUSED):
        after = machine.step(state, intended)
        difference = compared(machine, state, command, intended, after, view)
        return difference if difference is not None else Explained((intended,), after)
    if intended is not None and any(act.key(intended) == act.key(action) for action in machine.actions(state)):
        return Divergence(
            "work-remaining-keeps-the-engine-stepping",
            f"The target refused {command} although the contract allows it: {outcome.reason}.",
            ("it can be done here",),
            (f"refused: {outcome.reason}",),
            type(intended),
            ("refused", command.verb, outcome.reason.partition(":")[0]),
        )
    difference = compared(machine, state, command, intended, state, view)
    if difference is not None:
        return difference._replace(property="refused-changes-nothing")
    return Explained((), state)


def _accepted(command: Command, intended: Action) -> Divergence:
    freed = isinstance(intended, act.FreeTwice)
    return Divergence(
        "no-double-free" if freed else "refused-changes-nothing",
        f"The target accepted {command}, which must be refused.",
        ("refused by a typed error",),
        ("accepted",),
        type(intended),
        ("accepted", command.verb),
    )
