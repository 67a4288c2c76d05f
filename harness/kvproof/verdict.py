"""Verdicts, results, and the exit status that they add up to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kvmodel.contract import Discipline
from kvproof.failure import Failure
from kvproof.report.story import Story


class Verdict(StrEnum):
    """What one engine has found out about one target."""

    PROVED = "PROVED"
    """For all sizes, or for every transition at a named scope."""
    PASSED = "PASSED"
    """Sampled: the planned count was reached, and nothing was found."""
    REFUTED = "REFUTED"
    """There is a trace that breaks a property."""
    UNDETERMINED = "UNDETERMINED"
    """Cut short before the planned count. Never green."""
    ERROR = "ERROR"
    """The check itself failed."""
    SKIPPED = "SKIPPED"
    """Not run, with the reason."""
    FRAGILE = "FRAGILE"
    """A fault that the target's contract with its environment excludes breaks a property: robustness, no violation."""
    KNOWN = "KNOWN"
    """A violation that `--known` lists."""
    FIXED = "FIXED"
    """A violation that is listed or recorded, and does not occur any more."""
    COUNTEREXAMPLE_TO_INDUCTION = "COUNTEREXAMPLE_TO_INDUCTION"
    """A state, perhaps unreachable, from which an action leaves the invariant."""


BAD_USAGE = 2
INTERRUPTED = 130
TERMINATED = 143

_SEVERITY: tuple[Verdict, ...] = (
    Verdict.REFUTED,
    Verdict.ERROR,
    Verdict.COUNTEREXAMPLE_TO_INDUCTION,
    Verdict.UNDETERMINED,
    Verdict.FRAGILE,
    Verdict.KNOWN,
    Verdict.PASSED,
    Verdict.PROVED,
    Verdict.FIXED,
    Verdict.SKIPPED,
)
_EXIT: Mapping[Verdict, int] = {
    Verdict.REFUTED: 1,
    Verdict.ERROR: 2,
    Verdict.COUNTEREXAMPLE_TO_INDUCTION: 4,
    Verdict.UNDETERMINED: 3,
}


@dataclass(frozen=True)
class Result:
    """What one engine says about one target in one discipline at one scope.

    scope         its name; empty when the engine works without one
    property      the property that is refuted, or that alone was checked; None: all that hold for the target
    seconds       wall time of the engine
    states, transitions   distinct ones that were visited; None where the engine does not count them
    trace         path of the saved trace
    detail        one line for people: the reason of SKIPPED, of ERROR and of UNDETERMINED; further lines may follow
    counts        what was done, by name (see `kvproof.report.coverage` for the names that reports understand)
    story         the run told step by step, of the engine that tells it (`kvproof show`)
    """

    engine: str
    target: str
    discipline: Discipline | None
    scope: str
    property: str | None
    verdict: Verdict
    seconds: float
    states: int | None = None
    transitions: int | None = None
    trace: str | None = None
    detail: str = ""
    failure: Failure | None = None
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    story: Story | None = None


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several: a violation before an error, before what was cut short, before what is green.

    A known violation is green, and says so only when nothing but known violations was found. Without any, SKIPPED.
    """
    return min(verdicts, key=_SEVERITY.index, default=Verdict.SKIPPED)


def overall(results: Iterable[Result]) -> Verdict:
    """The verdict of a whole run: what is not green as it is; PROVED only if everything that ran is proved."""
    verdict = worst(result.verdict for result in results)
    return Verdict.PASSED if verdict in (Verdict.FRAGILE, Verdict.KNOWN, Verdict.FIXED) else verdict


def exit_status(results: Iterable[Result]) -> int:
    """1 if anything is refuted, else 2 for an error, 4 for a counterexample to induction, 3 if cut short, else 0."""
    return _EXIT.get(worst(result.verdict for result in results), 0)
