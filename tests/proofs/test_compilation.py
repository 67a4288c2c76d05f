"""The compiled invariants are the interpreter's: on states that are reached, and on states that are spoiled."""

import random
from collections.abc import Iterator

import pytest

from kvmodel import Contract, Machine, State
from kvmodel.block_pool import Pool
from kvmodel.contract import DISCIPLINES, Discipline
from kvmodel.request import Request
from kvmodel.transfer_job import Job
from kvproof.scopes import parse_scope
from kvspecs.proof.compilation import Compiled, compiled, source, state_of
from kvspecs.proof.interpreter import Interpreter
from kvspecs.proof.invariants import invariants_of

SCOPE = "s2,lookups=yes,survivors=yes,losses=1,meanings=invalidate+evict,resets=2"


ENDS = frozenset({"Abort", "Finish", "Preempt", "LoseReport"})
"""Walks at random would be over soon with these."""


def reached(machine: Machine, chance: random.Random, count: int) -> list[State]:
    """States along walks at random, of all depths."""
    found: list[State] = []
    while len(found) < count:
        state = machine.initial()
        for _ in range(chance.randrange(5, 40)):
            actions = [action for action in machine.actions(state) if type(action).__name__ not in ENDS]
            if not actions:
                break
            state = machine.step(state, chance.choice(actions))
        found.append(state)
    return found


def spoiled(chance: random.Random, states: list[State]) -> Iterator[State]:
    """States of which one thing is wrong: what two states have, mixed."""
    for state in states:
        other = chance.choice(states)
        yield state._replace(device=other.device)
        yield state._replace(requests=other.requests)
        yield state._replace(jobs=other.jobs, next_job=chance.choice((state.next_job, other.next_job)))
        yield state._replace(steps=other.steps)
        yield state._replace(device_contents=other.device_contents, host=_emptied(state.host))
        yield state._replace(requests=tuple(_again(chance, request) for request in state.requests))
        yield state._replace(jobs=tuple(_renamed(chance, job) for job in state.jobs))


def _emptied(pool: Pool) -> Pool:
    return pool._replace(keys=tuple(0 for _ in pool.keys))


def _again(chance: random.Random, request: Request) -> Request:
    return request._replace(phase=chance.randrange(6), computed=chance.randrange(2), outdated=chance.random() < 0.5)


def _renamed(chance: random.Random, job: Job) -> Job:
    return job._replace(view=chance.randrange(3), progress=tuple(chance.randrange(1, 4) for _ in job.progress))


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_they_say_what_the_interpreter_says(discipline: Discipline) -> None:
    _, sizes = parse_scope(SCOPE)
    machine = Machine(Contract(discipline, output_from="first"), sizes)
    interpreter, fast = Interpreter(machine), Compiled(machine.setting)
    chance = random.Random(0)
    states = reached(machine, chance, 50)
    broken: set[str] = set()
    for state in (*states, *spoiled(chance, states)):
        found = {str(one) for one in fast.broken(state)}
        assert found == set(interpreter.broken(interpreter.tables(state)))
        broken.update(one.partition("(")[0] for one in found)
    assert len(broken) >= 20


@pytest.mark.parametrize(("discipline", "count"), [("pinning", 92), ("fencing", 89)])
def test_every_invariant_is_compiled(discipline: Discipline, count: int) -> None:
    invariants, _ = compiled(discipline)
    assert [invariant.name for invariant in invariants] == [i.name for i in invariants_of(discipline)]
    assert len(invariants) == count


def test_what_is_compiled_can_be_read() -> None:
    invariants, _ = compiled("pinning")
    issued = [invariant for invariant in invariants if invariant.name == "issued"]
    _, sizes = parse_scope("s1")
    w = Compiled(Machine(Contract("pinning"), sizes).setting).w
    text = source(w, issued * 2, state_of(w))
    assert text.startswith("def denied(tables, universe, w):\n    view = tables['view'].get\n")
    assert text.count("tables['view']") == 1
    assert text.count("    for j0 in J:\n") == 2
    assert text.endswith("yield 1, (j0, )")
