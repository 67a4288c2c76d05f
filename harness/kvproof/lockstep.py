"""Lockstep under Hypothesis: a state machine whose one rule gives an enabled command to a target and explains it.

`fuzz` runs it, and so does what `conformance` makes.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kvmodel import Contract, Machine, Scope
from kvmodel.transfer_job import CASCADE
from kvproof.failure import fingerprint
from kvproof.targets.command import STREAMS, Command, describe
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed, explain
from kvproof.targets.guarded import performed, started
from kvproof.targets.judging import at_start, differing_offers
from kvproof.targets.outcome import Crashed
from kvproof.targets.target import Target, opened
from kvproof.targets.view import compared_fields
from kvproof.targets.wording import command_of, reportable

DEFAULT_SCOPE = "fuzz"
"""The scope that is used unless another one is given: larger than what is searched exhaustively, with everything on."""

HEALTH_CHECKS = [HealthCheck(check) for check in HealthCheck]
"""All that Hypothesis has. They are suppressed: they judge how fast a target is and how commands are drawn."""


REFUSED = "refused"
"""The kind of commands that are given although they must be refused, now and then."""

KINDS: Mapping[str, tuple[int, frozenset[str]]] = {
    "serving": (
        12,
        frozenset(
            {"schedule", "promote", "admit", "grow", "preempt_pressure", "launch", "wake", "finish"}
            | {"handle_output", "run", "report", "report_all", "report_mark"}
        ),
    ),
    "arrivals": (3, frozenset({"submit"})),
    "lookups": (2, frozenset({"lookup", "release_lookup"})),
    "departures": (1, frozenset({"preempt", "abort", "stop"})),
    "resets": (1, frozenset({"reset"})),
    "faults": (
        1,
        frozenset({"fail_copy", "fail_block", "duplicate_report", "lose_report", "repeat_mark", "lose_mark"})
        | {"forge_report", "free_twice", "expire", "die", "declare_dead"},
    ),
    REFUSED: (1, frozenset()),
}
"""Kinds of commands, how often each is drawn beside the others, and its verbs. Drawn alike, aborts and resets would end
everything before anything is loaded."""

KIND_OF = {verb: kind for kind, (_, verbs) in KINDS.items() for verb in verbs}

WITHOUT = ("lookups", "departures", "resets", "faults", REFUSED)
"""Kinds of which each run lacks some: what is rare in a mixture is common in a run that has nothing else."""


class Nonconforming(AssertionError):
    """A target did what cannot be accounted for. The message is the numbered commands and what differs."""


class Spent(BaseException):
    """The time is up. No Exception, so that Hypothesis does not take it for a failure of the target."""


class Lockstep(RuleBasedStateMachine):
    """A target and the machine, side by side. Subclasses set `target_class`, `contract` and `scope`.

    performed  commands of all runs of this class so far (count)
    fields     of the view that were compared in them
    taken      how often each action of the machine accounted for one of them, by its name
    failed     commands and divergence of the last run that failed
    deadline   `time.monotonic()` after which no command is given any more; None: never
    """

    target_class: ClassVar[type[Target]]
    contract: ClassVar[Contract]
    scope: ClassVar[Scope]
    performed: ClassVar[int] = 0
    fields: ClassVar[frozenset[str]] = frozenset()
    taken: ClassVar[Counter[str]] = Counter()
    failed: ClassVar[tuple[tuple[Command, ...], Divergence] | None] = None
    deadline: ClassVar[float | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(self.contract, self.scope)
        self.state = self.machine.initial()
        self.possible = self.machine.actions(self.state)
        self.commands: list[Command] = []
        self.without = frozenset[str]()
        target = started(lambda: opened(self.target_class, self.machine.setting))
        if isinstance(target, Crashed):
            raise self._nonconforming(crashed(None, target))
        self.target = target
        difference = at_start(self.machine, self.target)
        if difference is not None:
            self.target.close()
            raise self._nonconforming(difference)

    @initialize(without=st.frozensets(st.sampled_from(WITHOUT)))
    def lacking(self, without: frozenset[str]) -> None:
        """Leave some kinds of commands out of this run."""
        self.without = without

    @rule(data=st.data())
    def command(self, data: st.DataObject) -> None:
        """Give one enabled command, or now and then one that must be refused, to both. Raises Spent."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise Spent
        enabled = self._enabled()
        kind = data.draw(st.sampled_from([kind for kind in enabled for _ in range(KINDS[kind][0])]))
        command = data.draw(st.sampled_from(enabled[kind]), label="command")
        type(self).performed += 1
        self.commands.append(command)
        outcome, view = performed(self.target, command)
        explained = explain(self.machine, self.state, command, outcome, view, self.target.exact)
        if isinstance(explained, Divergence):
            raise self._nonconforming(explained)
        type(self).fields |= compared_fields(self.target, view)
        self.taken.update(type(action).__name__ for action in explained.actions)
        self.state = explained.state
        self.possible = self.machine.actions(self.state)
        difference = differing_offers(self.machine, self.state, self.target, command, self.possible)
        if difference is not None:
            raise self._nonconforming(difference)

    def _enabled(self) -> dict[str, list[Command]]:
        """What may be done now, by kind, in the order of `KINDS`."""
        verbs: frozenset[str] | None = getattr(self.target, "verbs", None)
        commands = [command_of(action) for action in self.possible]
        commands += [Command("schedule")]
        commands += [
            Command("report_all", (worker,))
            for worker in range(self.scope.workers)
            if len(reportable(self.state, worker)) > 1
        ]
        found: dict[str, list[Command]] = {kind: [] for kind in KINDS if kind not in self.without}
        for kind, command in [(KIND_OF[command.verb], command) for command in commands] + self._refused(commands):
            if kind in found and (verbs is None or command.verb in verbs):
                found[kind].append(command)
        return {kind: commands for kind, commands in found.items() if commands}

    def _refused(self, enabled: Sequence[Command]) -> list[tuple[str, Command]]:
        """Operations that still wait for something, or are not there; and admissions, where the target must decide on
        them as the reference does."""
        streams = STREAMS if self.scope.second_blocks else STREAMS[:CASCADE]
        runs = [Command("run", (worker, stream)) for worker in range(self.scope.workers) for stream in streams]
        admissions = [Command("admit", (number,)) for number in range(len(self.scope.prompts))]
        odd = runs + admissions * self.target.exact
        return [(REFUSED, command) for command in odd if command not in enabled]

    def _nonconforming(self, divergence: Divergence) -> Nonconforming:
        type(self).failed = (tuple(self.commands), divergence)
        return Nonconforming(told(self.commands, divergence, self.scope))

    def teardown(self) -> None:
        self.target.close()


def told(commands: Sequence[Command], divergence: Divergence, scope: Scope) -> str:
    """A violation as the message of an assertion."""
    lines = [divergence.property, divergence.sentence]
    lines += [f"{number:3} {describe(command, scope)}" for number, command in enumerate(commands, 1)]
    for right, seen in zip(divergence.contract_lines, divergence.target_lines, strict=True):
        lines += [f"    contract  {right}", f"    target    {seen}"]
    lines.append(f"fingerprint {fingerprint(divergence.property, '', divergence.cause)}")
    return "\n".join(lines)


def lockstep_class(target_class: type[Target], contract: Contract, scope: Scope) -> type[Lockstep]:
    """A state machine of its own for one target, contract and scope."""
    name = f"{target_class.__name__}Lockstep"
    own = {"target_class": target_class, "contract": contract, "scope": scope, "taken": Counter[str]()}
    return type(name, (Lockstep,), own)
