"""The bundle of a failure that the command line has found, with its timeline."""

import dataclasses

from kvproof.bundle import files_of
from kvproof.cli.progress import ProgressLine
from kvproof.failure import Failure
from kvproof.job import Job
from kvproof.report.timeline import timeline
from kvproof.runner import run_jobs
from kvproof.trace.trace import Trace
from kvproof.verdict import Result

SECONDS = 60.0
"""How long a failing trace is performed once more for its timeline. One that hangs has none."""

MOST = 8
"""So many failures of one run get a timeline; `kvproof show ID --html FILE` makes any other."""


def beside(job: Job, result: Result, trace: Trace, told: int) -> dict[str, str]:
    """The files of the bundle by name. told: how many failures of this run have a timeline already."""
    failure = result.failure
    assert failure is not None
    return files_of(failure, trace, result.seconds, _timeline(job, failure, trace) if told < MOST else None)


def _timeline(job: Job, failure: Failure, trace: Trace) -> str | None:
    """The page; None if the trace does not fail when it is performed once more, or takes too long for it."""
    tell = dataclasses.replace(
        job,
        engine="tell",
        title="timeline",
        scope_name=failure.scope_name,
        scope=failure.scope,
        contract=trace.contract,
        device=trace.device,
        options={"trace": trace},
    )
    progress = ProgressLine()
    outcome = run_jobs([tell], costs=[1.0], workers=1, budget_s=SECONDS, show=progress.show)
    progress.clear()
    story = outcome.results[0].story
    return timeline(story) if story is not None and story.property is not None else None
