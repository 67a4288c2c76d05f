"""Lockstep under Hypothesis: a state machine whose one rule gives an enabled command to a target and explains it.

`conformance(MyTarget)` is what other people's pytest files call; `fuzz` runs the same class.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar
from unittest import TestCase

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from kvmodel import Contract, Machine, Scope
from kvmodel.transfer_job import CASCADE
from kvproof.engines.shrink import shrunk
from kvproof.failure import fingerprint
from kvproof.scopes import SCOPES
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
        | {"forge_report", "free_twice", "expire"},
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


class Lockstep(RuleBasedStateMachine):
    """A target and the machine, side by side. Subclasses set `target_class`, `contract` and `scope`.

    performed  commands of all runs of this class so far (count)
    fields     of the view that were compared in them
    taken      how often each action of the machine accounted for one of them, by its name
    failed     commands and divergence of the last run that failed
    """

    target_class: ClassVar[type[Target]]
    contract: ClassVar[Contract]
    scope: ClassVar[Scope]
    performed: ClassVar[int] = 0
    fields: ClassVar[frozenset[str]] = frozenset()
    taken: ClassVar[Counter[str]] = Counter()
    failed: ClassVar[tuple[tuple[Command, ...], Divergence] | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(self.contract, self.scope)
        self.state = self.machine.initial()
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
        """Give one enabled command, or now and then one that must be refused, to both."""
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
        difference = differing_offers(self.machine, self.state, self.target, command)
        if difference is not None:
            raise self._nonconforming(difference)

    def _enabled(self) -> dict[str, list[Command]]:
        """What may be done now, by kind, in the order of `KINDS`."""
        verbs: frozenset[str] | None = getattr(self.target, "verbs", None)
        commands = [command_of(action) for action in self.machine.actions(self.state)]
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


def conformance(
    target_class: type[Target],
    contract: Contract | None = None,
    scope: Scope | None = None,
    max_examples: int = 50,
    stateful_step_count: int = 100,
) -> type:
    """A `unittest.TestCase` that holds a target against the contract, for use in any pytest file:

        TestMyEngine = kvproof.conformance(MyTarget)

    contract  that of the target class (its attribute `contract`) unless given; without either, pinning
    scope     the named scope `fuzz` unless given
    max_examples, stateful_step_count   runs, and commands of a run at most (counts)

    It fails with the shortest sequence of commands that dropping commands leads to. Its attribute `settings` is
    Hypothesis's, to be replaced as a project likes: `derandomize=True` gives the same commands every time.
    """
    chosen = contract or getattr(target_class, "contract", None) or Contract("pinning")
    cls = lockstep_class(target_class, chosen, scope or SCOPES[DEFAULT_SCOPE])

    class Conformance(TestCase):
        settings = settings(
            max_examples=max_examples,
            stateful_step_count=stateful_step_count,
            deadline=None,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=HEALTH_CHECKS,
        )

        def runTest(self) -> None:  # noqa: N802 (unittest's name)
            try:
                run_state_machine_as_test(cls, settings=self.settings)
            except (Nonconforming, Flaky):
                raise Nonconforming(_shortened(cls)) from None

    return Conformance


def _shortened(cls: type[Lockstep]) -> str:
    assert cls.failed is not None
    machine = Machine(cls.contract, cls.scope)
    commands, divergence = cls.failed
    shorter, run, _ = shrunk(machine, lambda: opened(cls.target_class, machine.setting), commands, divergence, _never)
    return told(shorter, run.divergence or divergence, cls.scope)


def _never() -> bool:
    return False
