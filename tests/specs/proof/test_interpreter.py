"""The specification held against the machine: its transitions satisfy guards and updates, its states the invariants."""

from collections import Counter
from collections.abc import Callable

import pytest

from kvmodel import Contract, Machine
from kvmodel.contract import DISCIPLINES, Discipline
from kvproof.scopes import parse_scope
from kvproof.search.modes import variants
from kvspecs.proof.action import Effect
from kvspecs.proof.interpreter import Interpreter, NotSpecified


def machines(discipline: Discipline, scope: str) -> list[tuple[str, Machine]]:
    """The scope, and with each mode that the specification has."""
    name, sizes = parse_scope(scope)
    found = [(name, Machine(Contract(discipline), sizes))]
    for variant in variants(name, sizes, Contract(discipline), pairs=False):
        machine = Machine(variant.contract, variant.scope)
        try:
            Interpreter(machine)
        except NotSpecified:
            continue
        found.append((variant.name, machine))
    return found


def held(machine: Machine, limit: int, alter: Callable[..., Effect] | None = None) -> tuple[int, Counter[str]]:
    """Breadth first: how many transitions, and what does not agree, by its first words."""
    interpreter = Interpreter(machine, alter)
    todo = [machine.initial()]
    seen = set(todo)
    transitions, wrong = 0, Counter[str]()
    for state in todo:
        if transitions >= limit:
            break
        tables = interpreter.tables(state)
        wrong.update(f"invariant {text.partition('(')[0]}" for text in interpreter.broken(tables))
        for action in machine.actions(state):
            after = machine.step(state, action)
            transitions += 1
            found = interpreter.mismatches(state, action, after, tables, interpreter.tables(after))
            wrong.update(text.partition("(")[0] for text in found)
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return transitions, wrong


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_the_machine_takes_steps_of_the_specification_alone_in_every_mode(discipline: Discipline) -> None:
    found = machines(discipline, "s1")
    assert len(found) > 8
    for name, machine in found:
        transitions, wrong = held(machine, 300)
        assert transitions >= 218, name
        assert wrong == Counter(), name


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_two_workers(discipline: Discipline) -> None:
    _, sizes = parse_scope("s2,lookups=yes,survivors=yes,losses=1,meanings=invalidate+evict,resets=2")
    for output_from in ("all", "first"):
        transitions, wrong = held(Machine(Contract(discipline, output_from=output_from), sizes), 1500)
        assert transitions >= 1500
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
    with pytest.raises(NotSpecified, match="depth 2"):
        Interpreter(Machine(Contract("pinning", depth=2), sizes))
    with pytest.raises(NotSpecified, match="copies that fail"):
        Interpreter(Machine(Contract("pinning"), sizes._replace(failures=1)))
    with pytest.raises(NotSpecified, match="deadlines"):
        Interpreter(Machine(Contract("pinning", deadline="expire"), sizes))
