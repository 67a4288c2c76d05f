"""What the plan's exhaustive rows reach: every action of the machine, and both answers of every guard."""

from kvmodel import ACTIONS
from kvmodel.guards import GUARDS
from kvproof import plan
from kvproof.engines import explore
from kvproof.report.coverage import coverage
from kvproof.verdict import Result, Verdict


def test_every_action_is_taken_and_every_guard_answers_both_ways() -> None:
    """Of the machine alone, in the rows that count guards, until nothing is missing any more; a rule that none of them
    reaches fails here by its name."""
    jobs = [
        job
        for job in plan.build(plan.Selection(engines=("explore",))).jobs
        if job.options.get("coverage") is True or len(job.scope.prompts) == 1
    ]
    assert {(job.discipline, job.title) for job in jobs} >= {
        ("pinning", "explore"),
        ("pinning", "explore modes"),
        ("fencing", "explore"),
        ("fencing", "explore modes"),
    }
    results: list[Result] = []
    covered = coverage(results)
    for job in sorted(jobs, key=lambda job: (job.title, job.discipline)):
        results.append(explore.run(job, lambda text: None, lambda: False))
        covered = coverage(results)
        if not covered.missing:
            break
    assert {result.verdict for result in results} == {Verdict.PROVED}
    assert covered.missing == ()
    assert (covered.actions.total, covered.guards.total) == (len(ACTIONS), 2 * len(GUARDS))
    assert (len(ACTIONS), len(GUARDS)) == (28, 47)
