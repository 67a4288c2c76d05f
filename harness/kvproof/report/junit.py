"""Results as JUnit XML, which CI systems draw. It says what the exit status says: cut short is an error, not a skip."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from kvproof.report.failure_text import failure_text
from kvproof.verdict import Result, Verdict

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, not even escaped."""


def to_junit(results: Sequence[Result]) -> str:
    """One test case for each result: refuted is a failure; an error, a counterexample to induction and what was cut
    short are errors; what was skipped is skipped, with its reason; a known violation passes and says so."""
    suite = ElementTree.Element("testsuite", name="kvproof")
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for result in results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_text(".".join(word for word in ("kvproof", result.target, result.discipline) if word)),
            name=_text(" ".join(word for word in (result.engine, result.scope, result.property) if word)),
            time=f"{result.seconds:.3f}",
        )
        counts["tests"] += 1
        kind = _KINDS.get(result.verdict)
        if kind is None:
            words = f"{result.verdict}: {result.detail}" if result.detail else str(result.verdict)
            ElementTree.SubElement(case, "system-out").text = _text(words)
            continue
        counts[_COUNTED[kind]] += 1
        message = result.failure.sentence if result.failure is not None else result.detail.partition("\n")[0]
        element = ElementTree.SubElement(case, kind, message=_text(message), type=str(result.verdict))
        body = failure_text(result.failure, saved=result.trace) if result.failure is not None else result.detail
        if kind != "skipped":
            element.text = _text(body)
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{sum(result.seconds for result in results):.3f}")
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


_KINDS = {
    Verdict.REFUTED: "failure",
    Verdict.ERROR: "error",
    Verdict.COUNTEREXAMPLE_TO_INDUCTION: "error",
    Verdict.UNDETERMINED: "error",
    Verdict.SKIPPED: "skipped",
}
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def _text(words: str) -> str:
    return _NOT_XML.sub("\ufffd", words)
