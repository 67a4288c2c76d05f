"""The bundle: what is kept of a failure beside its trace and its report."""

import dataclasses
import json

from kvproof.cli.progress import ProgressLine
from kvproof.failure import Failure
from kvproof.job import Job
from kvproof.report.json_report import SCHEMA
from kvproof.report.timeline import timeline
from kvproof.reproduction import test_of
from kvproof.runner import run_jobs
from kvproof.trace import store
from kvproof.trace.trace import Trace
from kvproof.verdict import Result, Verdict

SECONDS = 60.0
"""How long a failing trace is performed once more for its timeline. One that hangs has none."""

MOST = 8
"""So many failures of one run get a timeline; `kvproof show ID --html FILE` makes any other."""


def beside(job: Job, result: Result, trace: Trace, told: int) -> dict[str, str]:
    """The files of the bundle by name. told: how many failures of this run have a timeline already."""
    failure = result.failure
    assert failure is not None
    files = {
        store.VERDICT_FILE: verdict_json(result, failure, trace.commit),
        store.REPRO_FILE: test_of(failure, trace.device),
    }
    page = _timeline(job, failure, trace) if told < MOST else None
    if page is not None:
        files[store.TIMELINE_FILE] = page
    return files


def verdict_json(result: Result, failure: Failure, commit: str) -> str:
    """One failure for machines: what its report says, as data."""
    about = {
        "schema": SCHEMA,
        "verdict": str(Verdict.FRAGILE if failure.fault else Verdict.REFUTED),
        "id": failure.fingerprint,
        "property": failure.property,
        "sentence": failure.sentence,
        "target": failure.target,
        "device": failure.device,
        "discipline": failure.discipline,
        "scope": failure.scope_name,
        "engine": failure.engine,
        "commit": commit,
        "seconds": round(result.seconds, 3),
        "commands": len(failure.commands),
        "minimal": failure.minimal,
        "contract": list(failure.contract_lines),
        "seen": list(failure.target_lines),
        "rule": failure.rule,
        "source": failure.source,
        "next_danger": failure.next_danger,
        "trace": store.TRACE_FILE,
    }
    return json.dumps(about, indent=2) + "\n"


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
