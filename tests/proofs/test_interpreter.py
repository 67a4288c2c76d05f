"""The specification held against the machine: its transitions satisfy guards and updates, its states the invariants."""

from collections import Counter

import pytest
from tests.proofs.held import held, machines

from kvmodel import Contract, Machine
from kvmodel.contract import DISCIPLINES, Discipline
from kvproof.scopes import parse_scope
from kvspecs.proof.action import Effect
from kvspecs.proof.interpreter import Interpreter, NotSpecified

pytestmark = pytest.mark.proofs


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_the_machine_takes_steps_of_the_specification_alone_in_every_mode(discipline: Discipline) -> None:
    found = machines(discipline, "s1")
    assert len(found) > 8
    for name, machine in found:
        transitions, wrong = held(machine, 120)
        assert transitions >= 120, name
        assert wrong == Counter(), name


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_two_workers(discipline: Discipline) -> None:
    _, sizes = parse_scope("s2,lookups=yes,survivors=yes,losses=1,meanings=invalidate+evict,resets=2")
    for output_from in ("all", "first"):
        transitions, wrong = held(Machine(Contract(discipline, output_from=output_from), sizes), 500)
        assert transitions >= 500
        assert wrong == Counter()


def test_a_planted_mismatch_is_found() -> None:
    """An update that forgets to publish, and a guard that is never true."""

    def forgets(name: str, w: object, s: object, p: object, effect: Effect) -> Effect:
        return effect.then(device_key=s.device_key) if name == "HandleOutput" else effect  # type: ignore[attr-defined]

    _, sizes = parse_scope("s1")
    _, wrong = held(Machine(Contract("pinning"), sizes), 300, forgets)
    assert set(wrong) == {"HandleOutput: device_key"}


def test_what_is_beyond_the_specification_is_refused() -> None:
    _, sizes = parse_scope("s1")
    with pytest.raises(NotSpecified, match="a second host tier is not in the specification"):
        Interpreter(Machine(Contract("pinning"), sizes._replace(second_blocks=1)))
    with pytest.raises(NotSpecified, match="deadlines"):
        Interpreter(Machine(Contract("pinning", deadline="expire"), sizes))
