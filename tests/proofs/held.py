"""Transitions of the machine held against the specification.

`python -m tests.proofs.held [N]` takes at most some N transitions in each discipline, of s1 and s2 in all modes that
the specification has, and half as many of s3, and prints how many there were and what does not agree.
"""

import sys
from collections import Counter
from collections.abc import Callable

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


def main(wanted: int) -> int:
    """wanted: of each discipline in all modes at s1 and s2, an equal share for each; and half as many at s3."""
    total, wrong = 0, Counter[str]()
    for discipline in DISCIPLINES:
        small = machines(discipline, "s1") + machines(discipline, "s2")
        for name, machine in [*small, ("s3", machines(discipline, "s3")[0][1])]:
            limit = wanted // 2 if name == "s3" else wanted // len(small)
            transitions, found = held(machine, limit)
            total += transitions
            wrong += found
            print(f"{discipline} {name}: {transitions:,} transitions, {dict(found) or 'no mismatch'}", flush=True)
    print(f"{total:,} transitions, {sum(wrong.values())} mismatches")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000))
