"""Bounded model checking: witnesses are reached, invariants hold on every short path, and bugs break them there."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kvmodel import Contract, Machine
from kvmodel.contract import DISCIPLINES, Discipline
from kvproof.scopes import parse_scope
from kvspecs.proof.abstraction import differences
from kvspecs.proof.action import Effect, Parameters
from kvspecs.proof.bounded import Bounded, Goal, Undecided
from kvspecs.proof.initial import Start, initial
from kvspecs.proof.interpreter import Interpreter
from kvspecs.proof.invariants import invariants_of
from kvspecs.proof.logic import all_of, any_of, no
from kvspecs.proof.state import State, Vocabulary
from kvspecs.proof.witnesses import WITNESSES, Witness, find

pytestmark = pytest.mark.proofs

ALL: list[tuple[Discipline, Witness]] = [(d, witness) for witness in WITNESSES for d in witness.disciplines]


@pytest.mark.parametrize(("discipline", "witness"), ALL, ids=[f"{d}: {witness.name}" for d, witness in ALL])
def test_the_witness_is_reached(discipline: Discipline, witness: Witness) -> None:
    path = find(discipline, witness)
    assert path is not None
    assert path.actions == witness.path
    assert len(path.states) == len(path.actions) + 1


def test_the_witnesses_are_named() -> None:
    assert len(WITNESSES) == 20
    assert "an abandoned load is copied and not reported while its source is owned again" in {w.name for w in WITNESSES}


def test_what_cannot_be_is_not_found() -> None:
    """Under pinning nothing is forgotten, and nobody drains."""
    overtaken = next(w for w in WITNESSES if w.name.startswith("a forgotten store"))
    assert find("pinning", overtaken) is None


def any_invariant_breaks(bounded: Bounded) -> Goal:
    broken = [bounded.breaks(invariant) for invariant in invariants_of(bounded.w.discipline)]
    return lambda b, s: any_of(*(goal(b, s) for goal in broken))


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_every_invariant_holds_within_two_actions(discipline: Discipline) -> None:
    bounded = Bounded(discipline)
    assert bounded.within(2, any_invariant_breaks(bounded)) is None


def test_a_bug_is_reached_on_a_shortest_path() -> None:
    """An abort that does not take the request out of the launched step: its blocks are free while they are written."""

    def stays_in_step(w: Vocabulary, s: State, p: Parameters, effect: Effect) -> Effect:
        return effect.then(left=s.left)

    bounded = Bounded("fencing", alter={"LeaveRunning": stays_in_step})
    invariant = next(i for i in invariants_of("fencing") if i.name == "computes-for-running")
    path = bounded.within(4, bounded.breaks(invariant))
    assert path is not None
    assert path.actions == ("Submit", "Admit", "Launch", "LeaveRunning")


def test_what_the_solver_gives_up_on_is_not_taken_for_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given a unit of its own resources in place of a time: how fast this machine is does not matter."""
    solver = Bounded._solver

    def poor(bounded: Bounded) -> Any:
        made = solver(bounded)
        made.set("rlimit", 1)
        return made

    monkeypatch.setattr(Bounded, "_solver", poor)
    bounded = Bounded("pinning")
    for search in (lambda: bounded.within(2, any_invariant_breaks(bounded)), lambda: find("pinning", WITNESSES[0])):
        with pytest.raises(Undecided, match=r"^the solver has given up after 60 s$"):
            search()


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_the_initial_state_satisfies_every_invariant_for_every_size(discipline: Discipline) -> None:
    start = Start(discipline)
    assert {outcome.verdict for outcome in start.prove()} == {"proved"}
    assert len(start.obligations) == len(invariants_of(discipline))


def _queued_twice(w: Vocabulary, s: State) -> State:
    return replace(s, device_queued=lambda d: 2)


def _in_a_table(w: Vocabulary, s: State) -> State:
    return replace(s, table=lambda r, d: True)


WRONG: tuple[tuple[Callable[[Vocabulary, State], State], str], ...] = (
    (_queued_twice, "device-queue"),
    (_in_a_table, "table-phase"),
)


@pytest.mark.parametrize(("alter", "fails"), WRONG)
def test_a_wrong_initial_state_fails(alter: Callable[[Vocabulary, State], State], fails: str) -> None:
    failed = {outcome.obligation.name for outcome in Start("pinning", alter).prove() if outcome.verdict != "proved"}
    assert fails in failed


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_the_machine_begins_there(discipline: Discipline) -> None:
    for scope in ("s1", "s2", "s3"):
        _, sizes = parse_scope(scope)
        machine = Machine(Contract(discipline), sizes)
        interpreter = Interpreter(machine)
        found = interpreter.tables(machine.initial())
        nothing: Any = None
        told = initial(interpreter.w, nothing, dict.fromkeys("DHRW", 0))
        assert list(differences(interpreter.w, told, found)) == []
        assert list(interpreter.broken(found)) == []
        assert all_of(no(found.state.in_steps(0)), found.state.next_job() == 0)
