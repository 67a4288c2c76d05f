"""prove: the contract for every number of blocks, requests, jobs and workers, by induction (`kvspecs.proof`).

The only engine that needs z3, and the one that imports it: when it runs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kvproof.job import Cut, Job, Progress
from kvproof.report.proof_screen import CERTIFIED, PREFIX
from kvproof.verdict import Result, Verdict
from kvspecs.proof import certificate
from kvspecs.proof.ranking.theorems import NAMES as THEOREMS

if TYPE_CHECKING:
    from kvmodel.contract import Discipline
    from kvspecs.proof.initial import Start
    from kvspecs.proof.parametric import Induction
    from kvspecs.proof.proof import Selection
    from kvspecs.proof.questions import Ask, Outcome
    from kvspecs.proof.ranking.solving import Proof


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Prove the selected obligations of one discipline.

    Options: `property` and `actions` select; `theorems` says whether to prove liveness by ranking, or safety (without
    it: both); `solver` is z3 or cvc5; `seeds` are z3's, in place of the job's; `each` adds a count for every
    obligation; `certified` proves what has changed since it was certified alone.
    """
    started = time.monotonic()
    try:
        kept = certificate.of(job.discipline) if job.options.get("certified") else None
        fits = kept is not None and _is_whole(job) and kept.fits
    except (certificate.BadCertificate, certificate.NoSolver) as error:
        return job.result(Verdict.ERROR, 0.0, detail=str(error))
    if kept is not None and fits:
        counts = {"safety": kept.safety, "planned_safety": kept.safety, "obligations": kept.obligations}
        counts |= {"theorems": kept.theorems, "planned_theorems": kept.theorems, "certified": kept.obligations}
        return job.result(Verdict.PROVED, time.monotonic() - started, detail="certified", counts=counts)
    try:
        from kvspecs.proof import counterexample, parametric, proof
    except ImportError as error:
        return job.result(Verdict.ERROR, 0.0, detail=f"prove needs z3-solver, which cannot be imported ({error})")
    actions = job.options.get("actions", ())
    assert isinstance(actions, tuple)
    selection = proof.Selection(str(job.options.get("property", "")), actions)
    outcomes: list[Outcome] = []
    told: list[str] = []
    unknown: list[str] = []
    ask = _ask(job, {} if kept is None else kept.asked)
    for proved, outcome in _proofs(job, selection, ask, cut, progress):
        outcomes.append(outcome)
        if outcome.verdict == proof.COUNTEREXAMPLE and outcome.model is None:
            told.append(f"{outcome.obligation}: cvc5 finds a counterexample; ask z3 to be told it")
        elif outcome.verdict == proof.COUNTEREXAMPLE:
            told += ["", *counterexample.told(outcome.model, proved, outcome.obligation)]
            if isinstance(proved, parametric.Induction):
                told.append(f"  {_confirmed(job, outcome)}")
        elif outcome.verdict == proof.UNKNOWN:
            unknown.append(str(outcome.obligation))
    stopped = cut()
    counts = _counts(job, outcomes)
    seconds = time.monotonic() - started
    failed = [str(o.obligation) for o in outcomes if o.verdict == proof.COUNTEREXAMPLE]
    if failed:
        first = f"{len(failed)} of {len(outcomes)} obligations fail: {_some(failed)}"
        verdict, detail = Verdict.COUNTEREXAMPLE_TO_INDUCTION, "\n".join([first, *told])
    elif stopped or unknown:
        why = f"cut short after {len(outcomes)} obligations" if stopped else f"the solver gave up on {_some(unknown)}"
        verdict, detail = Verdict.UNDETERMINED, why
    else:
        verdict, detail = Verdict.PROVED, f"{len(outcomes):,} obligations"
    return job.result(verdict, seconds, detail=detail, counts=counts)


def _is_whole(job: Job) -> bool:
    """Whether it asks for all that a certificate is about."""
    return not any(job.options.get(name) for name in ("property", "actions")) and "theorems" not in job.options


def _ask(job: Job, kept: certificate.Digests) -> Ask:
    """Who answers."""
    from kvspecs.proof import questions

    if job.options.get("solver") == "cvc5":
        from kvspecs.proof import second_opinion

        return second_opinion.asking_cvc5()
    seeds = job.options.get("seeds", (job.seed,))
    assert isinstance(seeds, tuple)
    ask = questions.asking_z3(*seeds)
    return questions.asking_what_changed(kept, ask) if kept else ask


def _proofs(
    job: Job, selection: Selection, ask: Ask, cut: Cut, progress: Progress
) -> Iterator[tuple[Start | Induction | Proof, Outcome]]:
    """The outcomes of what the job asks for: of safety, of liveness, or of both."""
    from kvspecs.proof import proof
    from kvspecs.proof.ranking import solving

    theorems = job.options.get("theorems")
    if not theorems:
        yield from proof.prove(job.discipline, selection, ask, cut, progress)
    if theorems or theorems is None:
        yield from solving.prove(job.discipline, selection, ask, cut, progress)


def asked(discipline: Discipline) -> dict[tuple[str, str], str]:
    """For every obligation that needs a solver, by action and name: the hash of what the solver is asked."""
    from kvspecs.proof.actions import actions_of
    from kvspecs.proof.initial import Start
    from kvspecs.proof.parametric import Induction
    from kvspecs.proof.ranking.solving import proofs

    actions = (Induction(discipline, action) for action in actions_of(discipline))
    return {
        (goal.obligation.action, goal.obligation.name): digest
        for provable in (Start(discipline), *actions, *proofs(discipline))
        for questions in provable.questions(lambda obligation: True)
        for goal, digest in zip(questions.goals, questions.digests(), strict=True)
    }


def _confirmed(job: Job, outcome: Outcome) -> str:
    """Whether the obligation fails where nothing is left to a choice of terms, too."""
    from kvspecs.proof import finite

    obligation = outcome.obligation
    verdicts = [o.verdict for o in finite.judged(job.discipline, obligation.action, obligation.name)]
    if verdicts == ["counterexample"]:
        return "Finite-scope induction confirms it: the obligation fails with two blocks of each tier, too."
    return "Finite-scope induction does not confirm it: perhaps the proof lacks a term, and the obligation holds."


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _counts(job: Job, outcomes: Sequence[Outcome]) -> dict[str, int]:
    from kvspecs.proof import proof

    counts: Counter[str] = Counter()
    found = proof.by_property(outcomes)
    for kind, names in (("safety", found.keys() - set(THEOREMS)), ("theorems", found.keys() & set(THEOREMS))):
        counts[kind] = sum(all(o.verdict == proof.PROVED for o in found[name]) for name in names)
        counts[f"planned_{kind}"] = len(names)
    counts["obligations"] = sum(o.verdict == proof.PROVED for o in outcomes)
    counts["planned_obligations"] = len(outcomes)
    if job.options.get("certified"):
        counts["certified"] = sum(o.by == "certificate" for o in outcomes)
        counts["afresh"] = sum(o.by == "solver" for o in outcomes)
    if job.options.get("each"):
        for o in outcomes:
            verdict = CERTIFIED if o.by == "certificate" else o.verdict
            name = f"{PREFIX}{o.obligation.property}:{o.obligation.action}:{o.obligation.name}:{verdict}"
            counts[name] += round(o.seconds * 1000)
    return dict(counts)
