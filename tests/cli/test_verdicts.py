"""Exit statuses, overall verdicts, and fingerprints that no run changes."""

import itertools
import os
import subprocess
import sys

import pytest

from kvproof.failure import fingerprint
from kvproof.verdict import Result, Verdict, exit_status, overall


def results(*verdicts: Verdict) -> list[Result]:
    return [Result("explore", "kvoffload", "pinning", "s1", None, verdict, 0.0) for verdict in verdicts]


V = Verdict


@pytest.mark.parametrize(
    ("verdicts", "status", "verdict"),
    [
        ((), 0, V.SKIPPED),
        ((V.PROVED, V.PROVED), 0, V.PROVED),
        ((V.PROVED, V.SKIPPED), 0, V.PROVED),
        ((V.PROVED, V.PASSED), 0, V.PASSED),
        ((V.SKIPPED,), 0, V.SKIPPED),
        ((V.PROVED, V.KNOWN), 0, V.PASSED),
        ((V.PROVED, V.FIXED), 0, V.PROVED),
        ((V.FIXED,), 0, V.PASSED),
        ((V.PROVED, V.UNDETERMINED), 3, V.UNDETERMINED),
        ((V.UNDETERMINED, V.COUNTEREXAMPLE_TO_INDUCTION), 4, V.COUNTEREXAMPLE_TO_INDUCTION),
        ((V.COUNTEREXAMPLE_TO_INDUCTION, V.ERROR), 2, V.ERROR),
        ((V.ERROR, V.REFUTED, V.PROVED), 1, V.REFUTED),
    ],
)
def test_exit_status_and_overall_verdict(verdicts: tuple[Verdict, ...], status: int, verdict: Verdict) -> None:
    for order in itertools.permutations(verdicts):
        assert exit_status(results(*order)) == status
        assert overall(results(*order)) is verdict


def test_only_what_is_found_skipped_or_beyond_the_contract_is_green() -> None:
    green = {verdict for verdict in Verdict if exit_status(results(verdict)) == 0}
    assert green == {V.PROVED, V.PASSED, V.SKIPPED, V.KNOWN, V.FIXED, V.FRAGILE}


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    code = "from kvproof.failure import fingerprint; print(fingerprint('p', 't', ('a', 'b')))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "4711")
    }
    assert seen == {"a3206b"}


def test_a_fingerprint_tells_its_parts_apart() -> None:
    parts = [
        ("p", "t", ("a", "b")),
        ("p", "t", ("ab",)),
        ("pt", "", ("a", "b")),
        ("p", "t", ("a", "b", "")),
        ("p", "ta", ("b",)),
    ]
    assert len({fingerprint(*part) for part in parts}) == len(parts)
