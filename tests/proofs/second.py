"""All that z3 is asked, asked of cvc5, in slices: what has been answered is kept, and is not asked again.

`python -m tests.proofs.second [--discipline D] [--action NAME...] [--seconds N] [--kept FILE]` asks until N seconds of
this process are spent, and prints for each action how many questions cvc5 confirms, how many it gives up on, and how
many are yet to be asked. An answer is kept by the hash of its question (`kvspecs.proof.questions`).
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof.actions import actions_of
from kvspecs.proof.initial import Start
from kvspecs.proof.parametric import Induction
from kvspecs.proof.questions import Goal, Provable, Questions
from kvspecs.proof.ranking.solving import proofs
from kvspecs.proof.second_opinion import LIMIT, Script

KEPT = Path(".kvproof/cvc5.jsonl")
LIVENESS = "liveness"
"""Stands where an action's name stands, for all lemmas."""


class Answers:
    """What cvc5 has answered, by the hash of the question and its limit of work, kept in a file line by line."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self._path = path
        self._known: dict[str, str] = dict(map(json.loads, lines))

    def of(self, digest: str) -> str | None:
        """What was answered, or None."""
        return self._known.get(f"{digest} {LIMIT}")

    def keep(self, digest: str, verdict: str) -> None:
        self._known[f"{digest} {LIMIT}"] = verdict
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([f"{digest} {LIMIT}", verdict]) + "\n")


class Asked(NamedTuple):
    """Questions about one action: for each goal its hash."""

    action: str
    questions: Questions
    digests: tuple[str, ...]


def asked(discipline: Discipline, names: Sequence[str] = ()) -> Iterator[Asked]:
    """All questions of a discipline, or those about these actions; the lemmas of liveness come last."""
    start: list[tuple[str, Provable]] = [("Initial", Start(discipline))]
    actions = ((action.name, Induction(discipline, action)) for action in actions_of(discipline))
    lemmas = ((LIVENESS, proof) for proof in proofs(discipline)) if not names or LIVENESS in names else ()
    for group in (start, actions, lemmas):
        for name, provable in group:
            if not names or name in names:
                for questions in provable.questions(lambda obligation: True):
                    yield Asked(name, questions, tuple(questions.digests()))


def answered(one: Asked, answers: Answers, until: float) -> Iterator[tuple[Goal, str]]:
    """For each goal what cvc5 answers, or has answered; `to be asked` from the time on that is given."""
    script: Script | None = None
    for number, (goal, digest) in enumerate(zip(one.questions.goals, one.digests, strict=True)):
        verdict = answers.of(digest)
        if verdict is None and time.process_time() < until:
            script = script or Script(one.questions, LIMIT)
            verdict = script.ask(number)
            answers.keep(digest, verdict)
        yield goal, verdict or "to be asked"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.proofs.second", description="Ask cvc5 all that z3 is asked.")
    parser.add_argument("--discipline", choices=DISCIPLINES, help="one alone")
    parser.add_argument("--action", nargs="+", default=(), help=f"these alone; {LIVENESS}: the lemmas")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of this process; then it stops")
    parser.add_argument("--kept", type=Path, default=KEPT, help="what has been answered; else .kvproof/cvc5.jsonl")
    parsed = parser.parse_args(arguments)
    answers, until = Answers(parsed.kept), time.process_time() + parsed.seconds
    total: Counter[str] = Counter()
    for discipline in (parsed.discipline,) if parsed.discipline else DISCIPLINES:
        by_action: dict[str, Counter[str]] = {}
        for one in asked(discipline, parsed.action):
            for goal, verdict in answered(one, answers, until):
                by_action.setdefault(one.action, Counter())[verdict] += 1
                if verdict in ("unknown", "counterexample"):
                    print(f"{discipline} {verdict}: {goal.obligation}", flush=True)
        for name, counts in by_action.items():
            print(f"{discipline} {name}: {_told(counts)}", flush=True)
            total += counts
    print(f"{_told(total)}; at most {LIMIT:,} units of cvc5's work for each")
    return 0 if set(total) == {"proved"} else 1


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in sorted(counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
