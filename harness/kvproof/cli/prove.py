"""`kvproof prove`: the contract for all sizes, by induction."""

import argparse
import dataclasses
import importlib.util
from collections.abc import Sequence

from kvmodel.contract import DISCIPLINES, Contract, Discipline
from kvproof import verdict
from kvproof.cli.flags import Parser, add_proof
from kvproof.cli.planned import WORKERS, report
from kvproof.cli.progress import ProgressLine
from kvproof.cores import cores
from kvproof.engines.prove import asked
from kvproof.job import Job
from kvproof.report import proof_screen
from kvproof.report.coverage import merged
from kvproof.rows import ALL_SIZES
from kvproof.runner import run_jobs
from kvproof.scopes import SCOPES
from kvproof.usage import BadUsage
from kvproof.verdict import Result, Verdict
from kvspecs.proof import certificate
from kvspecs.proof.actions import action_names
from kvspecs.proof.obligations import INITIAL, properties
from kvspecs.proof.ranking.theorems import NAMES as THEOREMS

HEAVY = ("Launch", "Reset")
"""Actions whose proofs take longest: each is a job of its own."""

SHARES = 3
"""Jobs that the other actions are dealt out to, so that two cores end at the same time (count)."""


def run(arguments: Sequence[str]) -> int:
    parser = Parser("prove", "Prove the safety properties of the contract for all sizes, by induction (needs z3).")
    add_proof(parser)
    parsed = parser.read(arguments)
    if importlib.util.find_spec("z3") is None:
        raise BadUsage("prove needs z3-solver, which is not installed; install kvproof with its dependencies")
    if parsed.solver == "cvc5":
        _check_second_opinion(parsed)
    disciplines: tuple[Discipline, ...] = (parsed.discipline,) if parsed.discipline is not None else DISCIPLINES
    if parsed.action is not None:
        disciplines = tuple(d for d in disciplines if parsed.action in _names(d)) or disciplines
    if parsed.certify and (parsed.action or parsed.property):
        raise BadUsage(
            "--certify is about whole disciplines, and --action or --property asks for a part; leave one out"
        )
    jobs = [job for discipline in disciplines for job in _jobs(discipline, parsed)]
    if not jobs:
        raise _about_nothing(parsed)
    before = certificate.sources() if parsed.certify else ""
    progress = ProgressLine()
    outcome = run_jobs(
        jobs,
        costs=[20.0 if job.options["actions"] == ("Launch",) else 10.0 for job in jobs],
        workers=min(WORKERS, cores()),
        budget_s=parsed.budget,
        show=progress.show,
    )
    progress.clear()
    found = [_joined(discipline, jobs, outcome.results) for discipline in disciplines]
    results = [result for result in found if not _is_of_nothing(result)]
    if not results:
        raise _about_nothing(parsed)
    if parsed.certify:
        _certify(results, before)
    columns: dict[Discipline, tuple[str, ...]] = {discipline: _names(discipline) for discipline in disciplines}
    text = proof_screen.screen(
        results, columns, outcome.seconds, parsed.seed, verbose=parsed.verbose, solver=parsed.solver or "z3"
    )
    report(text, (), [row for result in results for row in proof_screen.rows(result)], parsed)
    if outcome.signal is not None:
        return verdict.INTERRUPTED if outcome.signal == 2 else verdict.TERMINATED
    return verdict.exit_status(results)


def _is_of_nothing(result: Result) -> bool:
    """There was nothing to be proved, and so nothing was."""
    return result.verdict is Verdict.PROVED and result.counts["planned_obligations"] == 0


def _about_nothing(parsed: argparse.Namespace) -> BadUsage:
    return BadUsage(f"no obligation of {parsed.action} is about {parsed.property}; leave out one of the two")


def _certify(results: Sequence[Result], sources: str) -> None:
    """Keep a certificate for each discipline that is proved. Raises BadUsage if the specification is not any more what
    it was when `sources` was its hash, before the proofs."""
    proved: dict[Discipline, certificate.Certificate] = {
        result.discipline: certificate.Certificate(
            certificate.SEEDS,
            result.counts["safety"],
            result.counts["theorems"],
            result.counts["obligations"],
            asked(result.discipline),
        )
        for result in results
        if result.verdict is Verdict.PROVED and result.discipline is not None
    }
    if certificate.sources() != sources:
        raise BadUsage("the specification was changed while it was proved; no certificate is kept; prove it again")
    certificate.write(proved)


def _can_be_read() -> bool:
    """Whether there is something to go on from; what is no certificate is written afresh."""
    try:
        certificate.read()
    except certificate.BadCertificate:
        return False
    return True


def _check_second_opinion(parsed: argparse.Namespace) -> None:
    """Raises BadUsage for what cvc5 is not asked, or if it is not there."""
    if importlib.util.find_spec("cvc5") is None:
        raise BadUsage("--solver cvc5 needs cvc5, which is not installed; install kvproof[cvc5]")
    if parsed.certify:
        raise BadUsage("--certify is about z3's proofs, and --solver cvc5 asks another solver; leave one out")


def _names(discipline: Discipline) -> tuple[str, ...]:
    """What an obligation may be about: the initial state, or an action."""
    return (INITIAL, *action_names(discipline))


def _jobs(discipline: Discipline, parsed: argparse.Namespace) -> list[Job]:
    wanted_property, wanted = parsed.property, parsed.action
    provable = (*properties(), *THEOREMS)
    if wanted_property is not None and wanted_property not in provable:
        raise BadUsage(f"property {wanted_property!r:.60} is not proved by induction; use {', '.join(provable)}")
    names = _names(discipline)
    if wanted is not None and wanted not in names:
        raise BadUsage(f"action {wanted!r:.60} does not exist under {discipline}; use {', '.join(names)}")
    certifying = {"seeds": certificate.SEEDS, "certified": _can_be_read()} if parsed.certify else {}
    others = [name for name in names if name not in HEAVY]
    parts = [(name,) for name in HEAVY] + [tuple(others[share::SHARES]) for share in range(SHARES)]
    if wanted is not None:
        parts = [(wanted,)]
    kinds = [(part, False) for part in parts if wanted_property not in THEOREMS]
    if wanted_property in (None, *THEOREMS) and wanted != INITIAL:
        kinds.append(((wanted,) if wanted is not None else (), True))
    return [
        Job(
            engine="prove",
            target="",
            discipline=discipline,
            scope_name=ALL_SIZES,
            scope=SCOPES["s1"],
            contract=Contract(discipline),
            seed=parsed.seed,
            options={
                "actions": part,
                "property": wanted_property or "",
                "theorems": theorems,
                "solver": parsed.solver or "z3",
                "each": True,
                **certifying,
            },
        )
        for part, theorems in kinds
    ]


def _joined(discipline: Discipline, jobs: Sequence[Job], results: Sequence[Result]) -> Result:
    """One result for a discipline from those of its jobs."""
    own = [result for job, result in zip(jobs, results, strict=True) if job.discipline == discipline]
    found = verdict.worst(result.verdict for result in own)
    joined = dataclasses.replace(own[0], counts=dict(merged(own)))
    counts = {**joined.counts, **proof_screen.amounts(joined)}
    details = [result.detail for result in own if result.verdict is found]
    return dataclasses.replace(
        own[0],
        verdict=found,
        seconds=sum(result.seconds for result in own),
        counts=counts,
        detail="\n".join(details),
    )
