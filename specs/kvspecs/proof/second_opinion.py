"""The obligations asked of cvc5 too: what z3 was given, written as SMT-LIB, and read by another solver.

Formulas, elements and instances are made as they are for z3; only who answers is another. So this is a second opinion
about "it cannot be satisfied", and none about whether the right thing was asked.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import cvc5
import z3

from kvmodel.contract import Discipline
from kvspecs.proof.actions import actions_of
from kvspecs.proof.logic import Term, no
from kvspecs.proof.obligations import Obligation
from kvspecs.proof.parametric import Induction, Outcome, Pool
from kvspecs.proof.proof import EVERYTHING, Selection

LIMIT_MS = 10_000
"""For one obligation. What cvc5 does not answer in that time it does not decide."""

_VERDICTS = {"unsat": "proved", "sat": "counterexample"}


class Questions:
    """Goals under the same assumptions, asked of cvc5 one by one."""

    def __init__(self, assume: Callable[[Any], int], goals: Sequence[Term], limit_ms: int = LIMIT_MS) -> None:
        script = z3.SimpleSolver()
        self.instances = assume(script)
        for number, goal in enumerate(goals):
            script.add(z3.Implies(z3.Bool(f"ask{number}"), no(goal)))
        text = script.to_smt2().replace("(check-sat)", "")
        self._solver = cvc5.Solver(cvc5.TermManager())
        for option, value in (("incremental", "true"), ("tlimit-per", str(limit_ms))):
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
        return _VERDICTS.get(self._run(f"(check-sat-assuming (ask{number}))"), "unknown")


def prove(
    discipline: Discipline,
    selection: Selection = EVERYTHING,
    stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda text: None,
    limit_ms: int = LIMIT_MS,
) -> Iterator[tuple[Induction, Outcome]]:
    """Every selected obligation of the actions with its outcome; those that keep a formula as it is are not asked. Ends
    early when `stop` says so."""

    def wanted(obligation: Obligation) -> bool:
        return selection.property in ("", obligation.property)

    for action in actions_of(discipline):
        if not selection.takes(action.name):
            continue
        if stop():
            return
        say(action.name)
        induction = Induction(discipline, action)
        groups: dict[str, list[Obligation]] = {}
        for obligation in filter(wanted, induction.obligations):
            if induction.is_unchanged(obligation):
                yield induction, Outcome(obligation, "proved", 0.0)
            else:
                groups.setdefault("".join(sorted(obligation.sorts)), []).append(obligation)
        for group in groups.values():
            pool = induction.pool(group[0].sorts, induction.named(group[0]))
            questions = Questions(partial(_assume, induction, pool), [_goal(induction, o) for o in group], limit_ms)
            for number, obligation in enumerate(group):
                started = time.monotonic()
                verdict = questions.ask(number)
                yield induction, Outcome(obligation, verdict, time.monotonic() - started, questions.instances)
            if stop():
                return


def _assume(induction: Induction, pool: Pool, solver: Any) -> int:
    return induction.assume(solver, pool)


def _goal(induction: Induction, obligation: Obligation) -> Term:
    return obligation.formula(*induction.named(obligation))
