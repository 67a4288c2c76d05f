"""agrees-with-the-reference: the one property that no bug in a rule can break, since it is about engines that choose
otherwise than the reference's policy does, and legally."""

import pytest

from kvmodel import Contract, Machine, Scope
from kvmodel import actions as act
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import explain
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer, Outcome
from kvproof.targets.view import expected
from kvspecs.catalogue import AGREEMENT

SCOPE = Scope(device_blocks=3, host_blocks=2, workers=1, prompts=("ab",))


class OtherEnd(Ledger):
    """Takes fresh blocks from the other end of the free queue."""

    def perform(self, command: Command) -> Outcome:
        pool = self.engine.device_pool
        if command.verb == "admit":
            for block in reversed(list(pool.free_blocks())):
                pool.queue.move_to_end(block)
        return super().perform(command)


def test_another_legal_choice_is_a_disagreement_and_nothing_worse() -> None:
    machine = Machine(Contract("pinning"), SCOPE)
    target = OtherEnd(machine.setting)
    state = machine.initial()
    target.perform(Command("submit", (0,)))
    state = machine.step(state, act.Submit(0))
    admit = Command("admit", (0,))
    outcome = target.perform(admit)
    explained = explain(machine, state, admit, outcome, target.view(), exact=True)
    assert isinstance(explained, Divergence)
    assert explained.property == AGREEMENT
    assert explained.sentence == "On admit(0) the target made another choice than the reference."


@pytest.mark.parametrize("fresh", [(2, 1), (0, 2), (1, 0)])
def test_the_contract_allows_any_free_blocks(fresh: tuple[int, ...]) -> None:
    """Where a target does not promise to choose as the reference does, the same choice is accounted for."""
    machine = Machine(Contract("pinning"), SCOPE)
    state = machine.step(machine.initial(), act.Submit(0))
    choice = act.Admit(0, act.Admission((), (), fresh))
    machine.check(state, choice)
    assert machine.step(state, choice).requests[0].table == fresh
    outcome = Answer(None, (choice,))
    seen = expected(machine.step(state, choice))
    explained = explain(machine, state, Command("admit", (0,)), outcome, seen, exact=False)
    assert not isinstance(explained, Divergence)
    assert explained.actions == (choice,)
