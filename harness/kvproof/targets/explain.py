"""explain: which actions of the machine did this target just take, and does what is seen of it bear that out?

Shared by all targets. No search: an adapter says what the engine did and chose, `explain` puts the actions of one call
into the contract's order, has the machine judge each, and compares what is seen.
"""

from operator import itemgetter
from typing import NamedTuple

from kvmodel import Action, Forbidden, Machine, State, policy
from kvmodel import actions as act
from kvmodel.streams import runnable
from kvmodel.transfer_job import NONE, is_copied_everywhere
from kvproof.targets import decisions, leeway, naming
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.outcome import MALFORMED, Answer, Crashed, Outcome, Refused
from kvproof.targets.view import FIELDS, View, expected
from kvproof.targets.wellformed import oddity_of_actions, oddity_of_view
from kvproof.targets.wording import action_of, reports_of_all
from kvspecs.catalogue import NAMES, STEPPING


class Explained(NamedTuple):
    """The actions that account for the command, and the machine's state after them."""

    actions: tuple[Action, ...]
    state: State


class Accounted(NamedTuple):
    """What a command is said to have done, all of it legal: its actions, and the machine's state before the last of
    them and after it. Whether what is seen bears that out is another question."""

    actions: tuple[Action, ...]
    before: State
    after: State


ORDER: dict[type[Action], int] = {
    act.Report: 0,
    act.ReportMark: 0,
    act.HandleOutput: 1,
    act.Finish: 2,
    act.Wake: 3,
    act.PreemptUnderPressure: 4,
    act.Grow: 4,
    act.Lookup: 5,
    act.ReleaseLookup: 5,
    act.Promote: 5,
    act.Admit: 5,
    act.Launch: 6,
}
"""In which order one scheduling call takes its actions; those of one rank stay in the engine's order. What a lookup
keeps is given up for whatever the engine did next."""

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
        return crashed(command, outcome)
    if isinstance(outcome, Refused):
        return _refusal(machine, state, command, action_of(machine, state, command), outcome, view, exact)
    done = accounted(machine, state, command, outcome, exact)
    if isinstance(done, Divergence):
        return done
    difference = borne_out(machine, command, done, view, exact)
    return difference if difference is not None else Explained(done.actions, done.after)


def accounted(machine: Machine, state: State, command: Command, outcome: Answer, exact: bool) -> Accounted | Divergence:
    """What an answer says was done, judged; nothing is looked at for it."""
    odd = _oddity(machine, command, outcome)
    if odd:
        return crashed(command, Crashed(MALFORMED, odd))
    intended = action_of(machine, state, command)
    if isinstance(intended, ALWAYS_REFUSED):
        return _accepted(command, intended)
    before, after = state, state
    taken: list[Action] = []
    for action in _actions(machine, state, command, intended, outcome):
        action = _bound(machine, after, action, exact)
        try:
            if exact or not isinstance(action, act.Run) or not leeway.may_run(after, action):
                machine.check(after, action)
            chosen = not exact or _as_policy(machine, after, action)
            before, after = after, machine.step(after, action)
        except Forbidden as forbidden:
            if isinstance(action, act.Run):
                return _ran_too_early(machine, after, command, action)
            return naming.forbidden(machine, after, command, action, forbidden)
        taken.append(action)
        if not chosen:
            return naming.other_choice(machine, before, command, action)
    if exact and command.verb == "schedule":
        launched = bool(taken) and isinstance(taken[-1], act.Launch)
        left = decisions.left_undone(machine, before if launched else after, after, taken)
        if left is not None:
            return left
    return Accounted(tuple(taken), before, after)


def borne_out(machine: Machine, command: Command, done: Accounted, view: View, exact: bool) -> Divergence | None:
    """What is seen after a command that does not bear out what it is said to have done."""
    last = done.actions[-1] if done.actions else None
    return compared(machine, done.before, command, last, done.after, view, exact)


def compared(
    machine: Machine,
    before: State,
    command: Command | None,
    action: Action | None,
    after: State,
    view: View,
    exact: bool = True,
) -> Divergence | None:
    """The first field in which the target's view differs from the machine's, explained; None if there is none."""
    wanted = expected(after)
    if not exact and not oddity_of_view(machine.setting, view):
        view = leeway.settled(view, wanted, after)
    for name, seen, right in zip(FIELDS, view, wanted, strict=True):
        if seen is not None and right is not None and seen != right:
            odd = oddity_of_view(machine.setting, view)
            if odd:
                return crashed(command, Crashed(MALFORMED, odd))
            return naming.difference(machine, before, command, action, after, view, name)
    return None


def _ran_too_early(machine: Machine, state: State, command: Command, action: act.Run) -> Divergence:
    """What ran could run: that is said as if it had been seen, of targets too that do not show what may run."""
    seen = View(runnable=(*runnable(state), (action.worker, action.stream)))
    return naming.difference(machine, state, command, action, state, seen, "runnable")


def _oddity(machine: Machine, command: Command, outcome: Answer) -> str:
    """What makes no sense in an answer, whether or not the contract allows it."""
    if command.verb == "reset" and not isinstance(outcome.value, bool):
        return f"a reset answered {outcome.value!r:.40}, and neither True nor False"
    if not outcome.observed:
        return ""
    odd = oddity_of_actions(machine.setting, outcome.observed)
    if not odd and command.verb == "schedule":
        others = [type(action).__name__ for action in outcome.observed if type(action) not in ORDER]
        odd = f"a scheduling call does not take {others[0]}" if others else ""
    return odd


def _actions(
    machine: Machine, state: State, command: Command, intended: Action | None, outcome: Answer
) -> list[Action]:
    """What the target did: the command's own action with the choices that were observed, and what came with it."""
    observed = outcome.observed
    if command.verb == "report_all":
        own = reports_of_all(machine, state, int(command.args[0]))
    elif isinstance(intended, act.Reset):
        own = [intended._replace(answer=bool(outcome.value))]
    elif intended is None or command.verb == "schedule":
        own = []
    else:
        own = [next((action for action in observed if _stands_for(action, intended)), intended)]
    said = (act.Report, act.ReportMark, act.Reset)  # by the command
    others = [a for a in observed if not own or not (a is own[0] or (isinstance(a, said) and isinstance(own[0], said)))]
    return own + _in_order(others)


def _in_order(actions: list[Action]) -> list[Action]:
    if len(actions) < 2:
        return actions
    ranks: list[int] = []
    following = ORDER[act.ReleaseLookup]
    for action in reversed(actions):
        given_up = isinstance(action, act.ReleaseLookup)
        following = min(following, ORDER[act.ReleaseLookup]) if given_up else ORDER.get(type(action), 0)
        ranks.append(following)
    return [action for _, action in sorted(zip(reversed(ranks), actions, strict=True), key=itemgetter(0))]


def _stands_for(action: Action, intended: Action) -> bool:
    """Whether an observed action is the one that the command asks for, in the engine's own way."""
    if isinstance(intended, act.Lookup | act.Promote | act.Admit | act.Grow):
        return isinstance(action, type(intended)) and action.request == intended.request
    return type(action) is type(intended)


def _bound(machine: Machine, state: State, action: Action, exact: bool) -> Action:
    """What an engine does not say, and the machine's bookkeeping needs: store cursors, and the flushes that matter."""
    if not isinstance(action, act.Launch) or action.choice is None:
        return action
    unfinished = {job.id for job in state.jobs if not is_copied_everywhere(job)}
    flush = [job for job in action.choice.flush if job in unfinished]
    if not exact:
        flush = sorted(leeway.flushed_before(state).union(flush))
    choice = action.choice._replace(flush=tuple(flush))
    reference = policy.launching(machine.setting, state)
    if choice.stores == reference.stores:
        return act.Launch(choice._replace(cursors=reference.cursors))
    cursors = []
    for number, pairs in choice.stores:
        table = state.requests[number].table if number != NONE else ()
        offered = [table.index(pair.source) for pair in pairs if pair.source in table]
        if offered:
            cursors.append((number, max(offered) + 1))
    return act.Launch(choice._replace(cursors=tuple(cursors)))


def _as_policy(machine: Machine, state: State, action: Action) -> bool:
    setting = machine.setting
    match action:
        case act.Admit(number, choice):
            return choice is None or choice == policy.admission(setting, state, number)
        case act.Lookup(number, hits):
            return hits is None or hits == tuple(_lookup_hits(machine, state, number))
        case act.Promote(number, pairs):
            return pairs is None or pairs == policy.promotion(setting, state, number)
        case act.Grow(number, blocks):
            return blocks is None or blocks == policy.after_giving_up(setting, state, number).free[:1]
        case act.Launch(choice):
            return choice is None or choice == policy.launching(setting, state)
        case act.PreemptUnderPressure(number):
            return number == policy.pressure_victim(setting, state)
        case _:
            return True


def _lookup_hits(machine: Machine, state: State, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    found = policy.hits(machine.setting, state, number)
    return found.device, found.host


def crashed(command: Command | None, outcome: Crashed) -> Divergence:
    """A crash is a violation. command: that was carried out; None: the target was opened, or looked at at the start."""
    name = outcome.error if outcome.error in NAMES else _CRASHES.get(outcome.error, STEPPING.name)
    when = f"on {command}" if command is not None else "before the first command"
    sentence = f"The target failed with {outcome.error} {when}: {outcome.message}."
    return Divergence(
        name,
        sentence,
        ("the command is legal here",),
        (f"{outcome.error}: {outcome.message}",),
        None,
        ("crash", command.verb if command is not None else "start", outcome.error),
    )


def _refusal(
    machine: Machine, state: State, command: Command, intended: Action | None, outcome: Refused, view: View, exact: bool
) -> Explained | Divergence:
    """A refusal is right where the contract forbids the action, and for misuse; and it must have changed nothing."""
    if isinstance(intended, ALWAYS_REFUSED):
        after = machine.step(state, intended)
        difference = compared(machine, state, command, intended, after, view, exact)
        return difference if difference is not None else Explained((intended,), after)
    if (
        intended is not None
        and any(act.key(intended) == act.key(action) for action in machine.actions(state))
        and (exact or not leeway.may_be_refused(intended, view))
    ):
        return Divergence(
            "work-remaining-keeps-the-engine-stepping",
            f"The target refused {command} although the contract allows it: {outcome.reason}.",
            ("it can be done here",),
            (f"refused: {outcome.reason}",),
            type(intended),
            ("refused", command.verb, outcome.reason.partition(":")[0]),
        )
    difference = compared(machine, state, command, intended, state, view, exact)
    if difference is not None and difference.cause[0] == "view":
        return difference._replace(property="refused-changes-nothing")
    return difference if difference is not None else Explained((), state)


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
