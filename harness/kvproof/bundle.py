"""The bundle: what is kept of a failure beside its trace and its report."""

import json

from kvproof.failure import Failure
from kvproof.report.json_report import SCHEMA
from kvproof.reproduction import documented, test_of
from kvproof.trace import store
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict


def files_of(failure: Failure, trace: Trace, seconds: float, page: str | None) -> dict[str, str]:
    """The files by name. seconds: that the engine took until it had found it; page: the timeline, or None."""
    files = {
        store.VERDICT_FILE: verdict_json(failure, trace.commit, seconds),
        store.REPRO_FILE: test_of(failure, trace.device),
    }
    if failure.alone:
        files[store.ALONE_FILE] = f"{documented(failure, 'the engine')}\n\n{failure.alone}"
    if page is not None:
        files[store.TIMELINE_FILE] = page
    return files


def verdict_json(failure: Failure, commit: str, seconds: float) -> str:
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
        "seconds": round(seconds, 3),
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
