"""The proofs with one invariant more, which says nothing new: they are proved all the same, and none takes for ever.

`python -m tests.proofs.one_more [--seed N] [NAME...]` proves everything of both disciplines with each of these
invariants added, or with those that are named, and prints what became of it. It takes some minutes.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from kvmodel.contract import DISCIPLINES, Discipline
from kvspecs.proof import invariants
from kvspecs.proof.invariant import Invariant
from kvspecs.proof.logic import Term, all_of, differ, implies, no
from kvspecs.proof.parametric import invariants_before
from kvspecs.proof.proof import EVERYTHING, Selection, prove
from kvspecs.proof.questions import Outcome, asking_z3
from kvspecs.proof.ranking import solving
from kvspecs.proof.state import State, Vocabulary, live_store


def _held_is_referenced(w: Vocabulary, s: State, r: Term, d: Term) -> Term:
    return implies(s.table(r, d), s.device_refs(d) > 0)


def _reported_was_sent(w: Vocabulary, s: State, j: Term, x: Term) -> Term:
    return implies(s.reported(j, x), all_of(s.sent(j), s.copied(j, x), no(s.lost(j, x))))


def _stores_apart(w: Vocabulary, s: State, i: Term, j: Term, h: Term) -> Term:
    both = all_of(live_store(w, s, i), live_store(w, s, j), s.job_host(i, h), differ(i, j))
    return implies(both, no(s.job_host(j, h)))


REDUNDANT: tuple[Invariant, ...] = (
    Invariant("held-is-referenced", "RD", _held_is_referenced, "device-unowned says so", "free-means-unowned"),
    Invariant("reported-was-sent", "JW", _reported_was_sent, "progress says so", "workers-agree"),
    Invariant("stores-apart", "JJH", _stores_apart, "store-alone says so", "no-use-after-free"),
)
"""Each follows from the invariant that its reason names."""


def proved_with(
    extra: Invariant, discipline: Discipline, seed: int = 0, selection: Selection = EVERYTHING
) -> Iterator[Outcome]:
    """Every selected obligation of a discipline, with one invariant more."""
    before = invariants.ALL
    try:
        invariants.ALL = (*before, extra)
        invariants_before.cache_clear()
        for engine in (prove, solving.prove):
            for _, outcome in engine(discipline, selection, asking_z3(seed)):
                yield outcome
    finally:
        invariants.ALL = before
        invariants_before.cache_clear()


def _told(extra: Invariant, discipline: Discipline, seed: int) -> tuple[bool, str]:
    found = list(proved_with(extra, discipline, seed))
    verdicts = Counter(outcome.verdict for outcome in found)
    longest = max(found, key=lambda outcome: outcome.seconds)
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
    return set(verdicts) == {"proved"}, (
        f"{discipline} with {extra.name}, seed {seed}: {counts}; longest {longest.seconds:.1f} s, {longest.obligation}"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.proofs.one_more", description="The proofs with one invariant more.")
    parser.add_argument("--seed", type=int, default=0, help="z3's seed")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(each.name for each in REDUNDANT))
    parsed = parser.parse_args(arguments)
    every = True
    for extra in REDUNDANT:
        if not parsed.names or extra.name in parsed.names:
            for discipline in DISCIPLINES:
                holds, text = _told(extra, discipline, parsed.seed)
                every = every and holds
                print(text, flush=True)
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
