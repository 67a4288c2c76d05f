"""States that the solver draws, loaded into the machine, which takes the step: all tables are compared.

`python -m tests.proofs.drawn [N]` draws N states for each action in each discipline.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from kvmodel import Forbidden
from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.action import Action, Effect
from kvspecs.proof.actions import actions_of
from kvspecs.proof.concretisation import SIZES, Found, concrete, machine_of, shape, shape_of_choice
from kvspecs.proof.finite import FiniteInduction
from kvspecs.proof.interpreter import Interpreter
from kvspecs.proof.state import TABLES

WISHES = ("table", "sent", "shares", "in_steps", "copied", "job_host", "pins_device", "outdated", "left", "lost")
"""Tables of which some entries are asked to be true or false, so that the states differ; and so are choices."""


def _wish_for(solver: Any, wish: Any) -> None:
    """Ask for it, if it can be."""
    if str(solver.check(wish)) == "sat":
        solver.add(wish)


def draw(discipline: Discipline, action: Action, count: int, seed: int = 0) -> list[Found]:
    """States in which the action can happen, each wished for at random."""
    induction = FiniteInduction(discipline, action, sizes=SIZES)
    solver = induction.solver()
    solver.add([*shape(induction), *shape_of_choice(induction)])
    chance = random.Random(f"{seed} {action.name}")
    found: list[Found] = []
    for number in range(count):
        solver.push()
        for step in (induction.before.ahead(), induction.before.awaited()) if number % 2 == 0 else ():
            _wish_for(solver, step >= 0)  # two launched steps are rare, and are asked for
        for name, signature in action.parameters.items():
            if signature == "B":
                _wish_for(solver, induction.values[name] == (chance.random() < 0.5))
        for name in WISHES:
            for terms in induction.tuples(TABLES[name][0]):
                if chance.random() < 0.1:
                    _wish_for(solver, getattr(induction.before, name)(*terms) == (chance.random() < 0.6))
        assert str(solver.check()) == "sat"
        found.append(concrete(induction, solver.model()))
        solver.pop()
    return found


def disagreements(
    discipline: Discipline, drawn: list[Found], alter: Callable[..., Effect] | None = None
) -> Counter[str]:
    """What does not agree, by its first words, once the machine has taken the step from each state."""
    wrong = Counter[str]()
    for name, state, action in drawn:
        machine = machine_of(discipline, name)
        interpreter = Interpreter(machine, alter)
        tables = interpreter.tables(state)
        wrong.update(f"invariant {text.partition('(')[0]}" for text in interpreter.broken(tables))
        try:
            machine.check(state, action)
        except Forbidden as refusal:
            wrong[f"the machine forbids it: {refusal}"] += 1
            continue
        after = machine.step(state, action)
        found = interpreter.mismatches(state, action, after, tables, interpreter.tables(after))
        wrong.update(text.partition("(")[0] for text in found)
    return wrong


def main(count: int) -> int:
    total, wrong = 0, Counter[str]()
    for discipline in DISCIPLINES:
        for action in actions_of(discipline):
            drawn = draw(discipline, action, count)
            found = disagreements(discipline, drawn)
            total, wrong = total + len(drawn), wrong + found
            print(f"{discipline} {action.name}: {len(drawn)} states, {dict(found) or 'no mismatch'}", flush=True)
    print(f"{total:,} states, {sum(wrong.values())} mismatches")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4))
