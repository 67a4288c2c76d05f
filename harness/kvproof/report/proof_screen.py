"""The screen of `kvproof prove`: for each discipline a matrix of actions and properties, and what failed."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kvmodel.contract import Discipline
from kvproof import __version__
from kvproof.verdict import Result, Verdict, worst
from kvspecs.catalogue import NAMES
from kvspecs.proof.ranking.theorems import NAMES as THEOREMS

PREFIX = "proof:"
"""Of the counts that tell of one obligation: `proof:PROPERTY:ACTION:NAME:VERDICT`, with its milliseconds."""

CERTIFIED = "certified"
"""A verdict in these counts: proved before, and kept."""

NAME_WIDTH = 18
CELL_WIDTH = 5

_VERDICTS: Mapping[str, Verdict] = {
    "proved": Verdict.PROVED,
    CERTIFIED: Verdict.PROVED,
    "counterexample": Verdict.COUNTEREXAMPLE_TO_INDUCTION,
    "unknown": Verdict.UNDETERMINED,
}


class Obligation(NamedTuple):
    """One obligation and what became of it; `certified`: it was proved before, and that is kept."""

    property: str
    action: str
    name: str
    verdict: Verdict
    milliseconds: int
    certified: bool


def obligations(result: Result) -> list[Obligation]:
    """What the counts of a result tell of single obligations."""
    found: list[Obligation] = []
    for key, count in result.counts.items():
        if key.startswith(PREFIX):
            prop, action, name, verdict = key.removeprefix(PREFIX).split(":")
            found.append(Obligation(prop, action, name, _VERDICTS[verdict], count, verdict == CERTIFIED))
    return found


def amounts(result: Result) -> Mapping[str, int]:
    """How many properties and obligations there are, and how many of them are proved."""
    found = obligations(result)
    failed = {o.property for o in found if o.verdict is not Verdict.PROVED}
    theorems = {o.property for o in found} & set(THEOREMS)
    safety = {o.property for o in found} - theorems
    proved = sum(o.verdict is Verdict.PROVED for o in found)
    return {
        "safety": len(safety - failed),
        "planned_safety": len(safety),
        "theorems": len(theorems - failed),
        "planned_theorems": len(theorems),
        "obligations": proved,
        "planned_obligations": len(found),
    }


def rows(result: Result) -> list[Result]:
    """A result for each property, for machines; the whole one where there is none."""
    found = obligations(result)
    names = [name for name in (*NAMES, *THEOREMS) if any(o.property == name for o in found)]
    return [_row(result, name, [o for o in found if o.property == name]) for name in names] or [result]


def _row(result: Result, name: str, own: Sequence[Obligation]) -> Result:
    verdict = worst(o.verdict for o in own)
    cut = verdict is Verdict.PROVED and result.verdict in (Verdict.UNDETERMINED, Verdict.ERROR)
    return dataclasses.replace(
        result,
        property=name,
        verdict=result.verdict if cut else verdict,
        seconds=sum(o.milliseconds for o in own) / 1000,
        counts={"obligations": len(own)},
    )


def screen(
    results: Sequence[Result],
    actions: Mapping[Discipline, Sequence[str]],
    seconds: float,
    seed: int,
    *,
    verbose: bool,
    solver: str = "z3",
) -> str:
    """The whole screen, without a line break at its end."""
    lines = [f"kvproof {__version__}   prove, all sizes   {solver}   seed {seed}"]
    for result in results:
        assert result.discipline is not None
        lines += ["", *_of_discipline(result, actions[result.discipline], verbose)]
    verdict = worst(result.verdict for result in results)
    lines += ["", f"{_said(verdict)} in {seconds:.1f} s."]
    return "\n".join(lines)


def _said(verdict: Verdict) -> str:
    return "PROVED for all sizes" if verdict is Verdict.PROVED else str(verdict)


def _of_discipline(result: Result, actions: Sequence[str], verbose: bool) -> Iterator[str]:
    found = obligations(result)
    names = [name for name in NAMES if any(o.property == name for o in found)]
    proved = sum(o.verdict is Verdict.PROVED for o in found)
    safe = sum(all(o.verdict is Verdict.PROVED for o in found if o.property == name) for name in names)
    certified = sum(o.certified for o in found)
    kept = f" ({certified:,} of them certified before)" if certified else ""
    yield (
        f"{result.discipline}: {_said(result.verdict)}   {safe}/{len(names)} safety properties, "
        f"{proved:,}/{len(found):,} obligations{kept}, {result.seconds:.1f} s of one core"
    )
    yield " " * NAME_WIDTH + "".join(f"{number:>{CELL_WIDTH}}" for number, _ in enumerate(names, 1))
    for action in actions:
        own = [o for o in found if o.action == action]
        if own:
            cells = "".join(f"{_cell([o for o in own if o.property == name]):>{CELL_WIDTH}}" for name in names)
            yield f"{action:<{NAME_WIDTH}}{cells}"
    for number, name in enumerate(names, 1):
        own = [o for o in found if o.property == name]
        yield f"{number:>4}  {_line(name, own)}"
    yield from _theorems(found)
    if verbose:
        for o in found:
            seconds = f"{o.milliseconds / 1000:5.2f} s"
            yield f"      {o.verdict:<8} {o.action:<{NAME_WIDTH}}{o.name:<32} {seconds}  {o.property}"
    if result.verdict is not Verdict.PROVED:
        yield f"{result.verdict} {result.detail.rstrip()}"


def _line(name: str, own: Sequence[Obligation]) -> str:
    return f"{name:<34} {len(own):>4} obligations {sum(o.milliseconds for o in own) / 1000:6.1f} s"


def _theorems(found: Sequence[Obligation]) -> Iterator[str]:
    """Liveness: a line for each theorem, with what fails of it."""
    names = [name for name in THEOREMS if any(o.property == name for o in found)]
    if names:
        yield "      liveness by ranking, if workers go on, reports arrive and the engine steps (docs/proofs.md):"
    for name in names:
        own = [o for o in found if o.property == name]
        verdict = worst(o.verdict for o in own)
        yield f"      {_line(name, own)}{'' if verdict is Verdict.PROVED else f'  {verdict}'}"


def _cell(own: Sequence[Obligation]) -> str:
    """Seconds of the solver; a dot: less than a tenth; nothing: there is nothing to be proved."""
    if not own:
        return ""
    verdict = worst(o.verdict for o in own)
    if verdict is not Verdict.PROVED:
        return "FAIL" if verdict is Verdict.COUNTEREXAMPLE_TO_INDUCTION else "?"
    seconds = sum(o.milliseconds for o in own) / 1000
    return f"{seconds:.1f}" if seconds >= 0.05 else "."
