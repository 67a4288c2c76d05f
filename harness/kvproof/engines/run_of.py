"""One run of commands on a fresh target, each explained: what replay, shrinking and reports are made of."""

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

from kvmodel import Action, Machine, State
from kvmodel.actions import Reset
from kvmodel.contract import Contract, Discipline
from kvmodel.machine import RULES
from kvmodel.rules import reset_fencing, reset_pinning
from kvproof.failure import Failure, Minimal
from kvproof.obligations.runs import NOT_POSSIBLE, is_watched, run_of_watched
from kvproof.obligations.watched import Watched
from kvproof.search.modes import Variant
from kvproof.targets.alone import Alone, Unsaid, direct_test
from kvproof.targets.command import Command
from kvproof.targets.dangers import NEXT
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed, explain
from kvproof.targets.guarded import own_state, performed, seen, started
from kvproof.targets.invariants import Invariants
from kvproof.targets.judging import at_start, differing_offers
from kvproof.targets.narration import narrated
from kvproof.targets.outcome import Answer, Crashed, Outcome
from kvproof.targets.registry import MACHINE, load
from kvproof.targets.target import Abstracting, Target
from kvproof.targets.wording import beyond_scope
from kvproof.usage import BadUsage

Open = Callable[[], Target]
"""Opens a fresh target."""


class RunOf(NamedTuple):
    """What came of a sequence of commands.

    done        commands performed, the diverging one included
    notes       what each of them did
    state       of the machine after the last command that could be accounted for
    divergence  at command done - 1, or at the start if done is 0; None: all were accounted for
    beyond      why command `done` was not performed, in a sentence: no client or environment of this scope would give
                it, so that nothing follows from what a target does with it; mostly empty
    """

    done: int
    notes: tuple[str, ...]
    state: State
    divergence: Divergence | None
    beyond: str = ""


def run_of(
    machine: Machine,
    open_target: Open,
    commands: Iterable[Command],
    cut: Callable[[], bool],
    given: Callable[[Machine, State, Command], bool] = lambda machine, state, command: True,
    told: Callable[[State], None] = lambda state: None,
) -> RunOf:
    """Perform the commands one by one until one cannot be accounted for, or until one may not be `given`.

    Commands that make no sense here (a report of a job that was not copied, say) are performed too, unless `given`
    says otherwise: a target refuses them, and `explain` wants it to. `told` hears the machine's state after each
    command that was accounted for, before the next one is taken from `commands`. A watched target is held to its
    obligations instead, and is only given what can be given to it; the machine's state stays the initial one.
    """
    notes: list[str] = []
    state = machine.initial()
    target = started(open_target)
    if isinstance(target, Crashed):
        return RunOf(0, (), state, crashed(None, target))
    try:
        if is_watched(target):
            done, watched_notes, found = run_of_watched(cast(Watched, target), tuple(commands), cut)
            return RunOf(done, watched_notes, state, found)
        divergence = at_start(machine, target)
        if divergence is not None:
            return RunOf(0, (), state, divergence)
        invariants = Invariants(machine.setting)
        own = _own_state(target)
        if isinstance(own, Crashed):
            return RunOf(0, (), state, crashed(None, own))
        for position, command in enumerate(commands):
            if cut() or not given(machine, state, command):
                return RunOf(position, tuple(notes), state, None)
            why = beyond_scope(machine, state, command)
            if why:
                beyond = f"command {position + 1}, {command}, is beyond the scope: {why}"
                return RunOf(position, tuple(notes), state, None, beyond)
            outcome, view = performed(target, command)
            explained = explain(machine, state, command, outcome, view, target.exact)
            value = outcome.value if isinstance(outcome, Answer) else None
            if isinstance(explained, Divergence):
                notes.append(f"answered {value}" if isinstance(value, bool) else "")
                return RunOf(position + 1, tuple(notes), state, explained)
            notes.append(narrated(machine, state, explained.actions, value) or _refused(outcome))
            state = explained.state
            if isinstance(target, Abstracting) and own is not None:
                reached = own_state(target, view)
                divergence = invariants.judged(own, command, explained.actions, reached)
                if divergence is not None:
                    return RunOf(position + 1, tuple(notes), state, divergence)
                assert isinstance(reached, State)
                own = reached
            told(state)
            divergence = differing_offers(machine, state, target, command)
            if divergence is not None:
                return RunOf(position + 1, tuple(notes), state, divergence)
        return RunOf(len(notes), tuple(notes), state, None)
    finally:
        target.close()


def _own_state(target: Target) -> State | Crashed | None:
    """The target's own state at the start, if it can give it."""
    if not isinstance(target, Abstracting):
        return None
    shown = seen(target)
    return shown if isinstance(shown, Crashed) else own_state(target, shown)


def _refused(outcome: Outcome) -> str:
    return "" if isinstance(outcome, Answer) else f"refused: {outcome[0]}"


def failure_of(
    variant: Variant,
    target: str,
    engine: str,
    device: str,
    commands: Sequence[Command],
    divergence: Divergence,
    notes: Sequence[str],
    minimal: Minimal,
    remark: str = "",
) -> Failure:
    """The failure that a divergence is. remark: a sentence added to what happened."""
    rule, source = rule_of(divergence.rule, variant.contract.discipline)
    failure = Failure(
        property=divergence.property,
        sentence=divergence.sentence + (f" {remark}" if remark else ""),
        target=target,
        discipline=variant.contract.discipline,
        scope_name=variant.name,
        scope=variant.scope,
        engine=engine,
        commands=tuple(commands),
        step=max(len(commands) - 1, 0),
        contract_lines=divergence.contract_lines,
        target_lines=divergence.target_lines,
        rule=rule,
        source=source,
        next_danger=NEXT.get(divergence.property),
        cause=divergence.cause,
        notes=tuple(notes),
        minimal=minimal,
        device=device,
        contract=variant.contract,
    )
    try:
        return dataclasses.replace(failure, alone=_alone(failure, variant.contract, divergence))
    except Unsaid as why:
        return dataclasses.replace(failure, alone_lacks=str(why))


def _alone(failure: Failure, contract: Contract, divergence: Divergence) -> str:
    """The failure as a test that needs no kvproof; empty of a target that says nothing of how. Raises Unsaid where it
    does, but not for all that is needed here."""
    try:
        alone = None if failure.target == MACHINE else getattr(load(failure.target, failure.device), "alone", None)
    except BadUsage:  # it cannot be opened here, such as an engine that only wrote a log
        return ""
    if not isinstance(alone, Alone):
        return ""
    notes = (*failure.notes, *[""] * len(failure.commands))
    given = [pair for pair in zip(failure.commands, notes, strict=False) if pair[1] != NOT_POSSIBLE]
    commands, noted = [command for command, _ in given], [note for _, note in given]
    name = f"{failure.fingerprint}_alone"
    return direct_test(alone, failure.scope, contract, commands, noted, divergence, name)


_SOURCE = re.compile(r"vLLM (?:PRs?|issues?) \d+(?:(?:,| and| or) \d+)*|PRs? \d+")


def rule_of(action: type[Action] | None, discipline: Discipline) -> tuple[str, str]:
    """The file of the rule for an action, and the public source that its text names."""
    if action is None:
        return "", ""
    of_reset = {"pinning": reset_pinning, "fencing": reset_fencing}[discipline]
    module = of_reset if action is Reset else sys.modules[RULES[action].apply.__module__]
    found = _SOURCE.search(module.__doc__ or "")
    return f"{module.__name__.replace('.', '/')}.py", found.group(0) if found else ""
