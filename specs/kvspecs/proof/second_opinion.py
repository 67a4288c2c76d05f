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
    """Questions as SMT-LIB, asked of cvc5 one by one."""

    def __init__(self, questions: Questions, limit: int) -> None:
        script = z3.SimpleSolver()
        self.instances = questions.assume(script)
        for number, goal in enumerate(questions.goals):
            script.add(z3.Implies(z3.Bool(f"ask{number}"), no(goal.formula)))
        text = script.to_smt2().replace("(check-sat)", "")
        self._solver = cvc5.Solver(cvc5.TermManager())
        for option, value in (("incremental", "true"), ("rlimit-per", str(limit))):
            self._solver.setOption(option, value)
        self._solver.setLogic("ALL")
        self._parser = cvc5.InputParser(self._solver)
        self._run(text)

    def _run(self, text: str) -> str:
        """Read commands and carry them out; what they say."""
        self._parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligations")
        said = ""
        while not (command := self._parser.nextCommand()).isNull():
            said += command.invoke(self._solver, self._parser.getSymbolManager())
        return said.strip()

    def ask(self, number: int) -> str:
        """What became of a goal: `proved`, `counterexample` or `unknown`."""
        return VERDICTS.get(self._run(f"(check-sat-assuming (ask{number}))"), "unknown")


def asking_cvc5(limit: int = LIMIT) -> Ask:
    """cvc5 is asked each goal, with so many units of work."""

    def ask(questions: Questions) -> Iterator[Outcome]:
        script = Script(questions, limit)
        for number, goal in enumerate(questions.goals):
            started = time.monotonic()
            verdict = script.ask(number)
            yield Outcome(goal.obligation, verdict, time.monotonic() - started, script.instances)

    return ask
