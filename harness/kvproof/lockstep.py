"""Lockstep under Hypothesis: a state machine whose one rule gives an enabled command to a target and explains it.

`conformance(MyTarget)` is what other people's pytest files call; `fuzz` runs the same class.
"""

from collections.abc import Sequence
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from kvmodel import Contract, Machine, Scope
from kvproof.failure import fingerprint
from kvproof.scopes import SCOPES
from kvproof.targets import naming
from kvproof.targets.command import Command, describe
from kvproof.targets.explain import compared, explain
from kvproof.targets.naming import Divergence
from kvproof.targets.target import Offering, Target, opened
from kvproof.targets.view import offers_in
from kvproof.targets.wording import command_of, reportable

DEFAULT_SCOPE = "fuzz"
"""The scope that is used unless another one is given: larger than what is searched exhaustively, with everything on."""


class Nonconforming(AssertionError):
    """A target did what cannot be accounted for. The message is the numbered commands and what differs."""


class Lockstep(RuleBasedStateMachine):
    """A target and the machine, side by side. Subclasses set `target_class`, `contract` and `scope`.

    performed  commands of all runs of this class so far (count)
    failed     commands and divergence of the last run that failed
    """

    target_class: ClassVar[type[Target]]
    contract: ClassVar[Contract]
    scope: ClassVar[Scope]
    performed: ClassVar[int] = 0
    failed: ClassVar[tuple[tuple[Command, ...], Divergence] | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(self.contract, self.scope)
        self.target = opened(self.target_class, self.machine.setting)
        self.state = self.machine.initial()
        self.commands: list[Command] = []
        self._judge(compared(self.machine, self.state, None, None, self.state, self.target.view()))

    @rule(data=st.data())
    def command(self, data: st.DataObject) -> None:
        """Give one enabled command, or now and then one that must be refused, to both."""
        command = data.draw(st.sampled_from(self._enabled()), label="command")
        type(self).performed += 1
        self.commands.append(command)
        outcome = self.target.perform(command)
        explained = explain(self.machine, self.state, command, outcome, self.target.view(), self.target.exact)
        if isinstance(explained, Divergence):
            self._judge(explained)
            return
        self.state = explained.state
        if self.target.exact and isinstance(self.target, Offering):
            expected, seen = offers_in(self.machine, self.state), self.target.offers()
            if expected != seen:
                self._judge(naming.offers(self.machine, self.state, expected, seen))

    def _enabled(self) -> list[Command]:
        verbs: frozenset[str] | None = getattr(self.target, "verbs", None)
        commands = [command_of(action) for action in self.machine.actions(self.state)]
        commands += [Command("schedule")]
        commands += [
            Command("report_all", (worker,))
            for worker in range(self.scope.workers)
            if len(reportable(self.state, worker)) > 1
        ]
        if self.target.exact:
            commands += [Command("admit", (number,)) for number in range(len(self.scope.prompts))]
        return [command for command in commands if verbs is None or command.verb in verbs]

    def _judge(self, divergence: Divergence | None) -> None:
        if divergence is None:
            return
        type(self).failed = (tuple(self.commands), divergence)
        raise Nonconforming(told(self.commands, divergence, self.scope))

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
    return type(name, (Lockstep,), {"target_class": target_class, "contract": contract, "scope": scope})


def conformance(
    target_class: type[Target],
    contract: Contract | None = None,
    scope: Scope | None = None,
    max_examples: int = 100,
    stateful_step_count: int = 50,
) -> type:
    """A `unittest.TestCase` that holds a target against the contract, for use in any pytest file:

        TestMyEngine = kvproof.conformance(MyTarget)

    contract  that of the target class (its attribute `contract`) unless given; without either, pinning
    scope     the named scope `fuzz` unless given
    """
    chosen = contract or getattr(target_class, "contract", None) or Contract("pinning")
    cls = lockstep_class(target_class, chosen, scope or SCOPES[DEFAULT_SCOPE])
    case: type = cls.TestCase
    case.settings = settings(  # type: ignore[attr-defined]
        max_examples=max_examples,
        stateful_step_count=stateful_step_count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return case
