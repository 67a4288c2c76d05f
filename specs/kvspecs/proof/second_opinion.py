"""The obligations asked of cvc5 too: what z3 was given, written as SMT-LIB, and read by another solver.

Formulas, elements and instances are made as they are for z3; only who answers is another. So this is a second opinion
about "it cannot be satisfied", and none about whether the right thing was asked.
"""

import time
from collections.abc import Iterator

import cvc5
import z3

from kvspecs.proof.logic import no
from kvspecs.proof.questions import VERDICTS, Ask, Outcome, Questions

LIMIT = 10_000_000
"""For one obligation, in cvc5's own units of work, of which it does some 500,000 a second. What it does not answer
within them it does not decide. They are no time: the same obligations are decided on a busy machine."""


class Script:
    """Questions as SMT-LIB, each asked of a solver of its own.

    A solver that is asked one after another has to keep what it would simplify away for a single one: on `Launch` it
    takes minutes where these take seconds.
    """

    def __init__(self, questions: Questions, limit: int) -> None:
        script = z3.SimpleSolver()
        self.instances = questions.assume(script)
        for number, goal in enumerate(questions.goals):
            script.add(z3.Implies(z3.Bool(f"ask{number}"), no(goal.formula)))
        self._limit = limit
        self._terms = cvc5.TermManager()
        reader = cvc5.Solver(self._terms)
        reader.setLogic("ALL")
        parser = cvc5.InputParser(reader)
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script.to_smt2().replace("(check-sat)", ""), "questions")
        while not (command := parser.nextCommand()).isNull():
            command.invoke(reader, parser.getSymbolManager())
        self._asserted = reader.getAssertions()
        parser.setStringInput(
            cvc5.InputLanguage.SMT_LIB_2_6, " ".join(f"ask{number}" for number in range(len(questions.goals))), "goals"
        )
        self._asked = [parser.nextTerm() for _ in questions.goals]

    def ask(self, number: int) -> str:
        """What became of a goal: `proved`, `counterexample` or `unknown`."""
        solver = cvc5.Solver(self._terms)
        solver.setOption("rlimit-per", str(self._limit))
        solver.setLogic("ALL")
        for formula in (*self._asserted, self._asked[number]):
            solver.assertFormula(formula)
        return VERDICTS.get(str(solver.checkSat()), "unknown")


def asking_cvc5(limit: int = LIMIT) -> Ask:
    """cvc5 is asked each goal, with so many units of work."""

    def ask(questions: Questions) -> Iterator[Outcome]:
        script = Script(questions, limit)
        for number, goal in enumerate(questions.goals):
            started = time.monotonic()
            verdict = script.ask(number)
            yield Outcome(goal.obligation, verdict, time.monotonic() - started, script.instances)

    return ask
