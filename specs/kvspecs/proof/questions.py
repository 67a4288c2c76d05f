"""What a solver is asked: goals under the same assumptions. A goal is proved if nothing satisfies its denial."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

import z3

from kvspecs.proof import instances
from kvspecs.proof.digest import digest_of, joined
from kvspecs.proof.instances import Pool, Template, digest_of_sorts
from kvspecs.proof.logic import Term, no
from kvspecs.proof.obligations import Obligation

TIMEOUT_MS = 60_000

VERDICTS: Mapping[str, str] = {"unsat": "proved", "sat": "counterexample"}
"""What a solver's answer to a denial says of the goal. Any other answer: `unknown`."""


By = Literal["solver", "certificate", "itself"]
"""Who has answered: a solver, now; the certificate, which keeps an earlier proof of the very same question; or nobody
was asked, since the formula is what it was before the action."""


class Outcome(NamedTuple):
    """What became of one obligation: `proved`, `counterexample` or `unknown`; the solver's seconds; and the model."""

    obligation: Obligation
    verdict: str
    seconds: float
    instances: int = 0
    model: Any = None
    by: By = "solver"


class Goal(NamedTuple):
    """What is to be shown for an obligation: its formula, of the elements for which it is denied."""

    obligation: Obligation
    formula: Term


class Questions(NamedTuple):
    """Goals, and what may be assumed: each template, on all terms of the pool."""

    assumed: Sequence[Template]
    pool: Pool
    goals: Sequence[Goal]

    def assume(self, solver: Any) -> int:
        """Assert all that is assumed. How many instances that are."""
        return sum(template.assert_on(solver, self.pool) for template in self.assumed)

    def digests(self) -> Iterator[str]:
        """For each goal the hash of all that its proof depends on: what is assumed, on which terms, what is denied; of
        which sorts; the solver, and the code that puts the question to it."""
        context = joined(_asker(), self.pool.digest(), *(template.digest() for template in self.assumed))
        for goal in self.goals:
            yield joined(context, digest_of(no(goal.formula)))


def _asker() -> str:
    code = (Path(module).read_text(encoding="utf-8") for module in (__file__, instances.__file__))
    return joined(metadata.version("z3-solver"), digest_of_sorts(), *code)


Ask = Callable[[Questions], Iterator[Outcome]]
"""Who answers: for each goal what became of it."""


def asking_z3(*seeds: int) -> Ask:
    """z3 is asked each goal, with each of these seeds; what it answers to the first that does not prove it counts."""

    def ask(questions: Questions) -> Iterator[Outcome]:
        for found in zip(*(_answers(questions, seed) for seed in seeds), strict=True):
            first = next((outcome for outcome in found if outcome.verdict != "proved"), found[0])
            yield first._replace(seconds=sum(outcome.seconds for outcome in found))

    return ask


def _answers(questions: Questions, seed: int) -> Iterator[Outcome]:
    solver = z3.SimpleSolver()
    solver.set("random_seed", seed)
    solver.set("timeout", TIMEOUT_MS)
    count = questions.assume(solver)
    for goal in questions.goals:
        started = time.monotonic()
        solver.push()
        solver.add(no(goal.formula))
        answer = str(solver.check())
        model = solver.model() if answer == "sat" else None
        solver.pop()
        yield Outcome(goal.obligation, VERDICTS.get(answer, "unknown"), time.monotonic() - started, count, model)


def asking_what_changed(kept: Mapping[tuple[str, str], str], ask: Ask) -> Ask:
    """Somebody is asked the goals alone of which no proof of the same question is kept. `kept`: digests, by action and
    name of the obligation."""

    def ask_the_rest(questions: Questions) -> Iterator[Outcome]:
        rest: list[Goal] = []
        for goal, digest in zip(questions.goals, questions.digests(), strict=True):
            if kept.get((goal.obligation.action, goal.obligation.name)) == digest:
                yield Outcome(goal.obligation, "proved", 0.0, by="certificate")
            else:
                rest.append(goal)
        if rest:
            yield from ask(questions._replace(goals=rest))

    return ask_the_rest


ASKING_Z3 = asking_z3(0)


class Provable(ABC):
    """Whatever has obligations: an action, the initial state, a lemma."""

    @property
    def unchanged(self) -> Sequence[Obligation]:
        """The obligations that hold as they are: nobody need be asked."""
        return ()

    @abstractmethod
    def questions(self, wanted: Callable[[Obligation], bool]) -> Iterator[Questions]:
        """What is to be asked for the other wanted obligations."""

    def prove(
        self, wanted: Callable[[Obligation], bool] = lambda obligation: True, ask: Ask = ASKING_Z3
    ) -> Iterator[Outcome]:
        """Every wanted obligation, with what became of it."""
        for obligation in filter(wanted, self.unchanged):
            yield Outcome(obligation, "proved", 0.0, by="itself")
        for questions in self.questions(wanted):
            yield from ask(questions)
