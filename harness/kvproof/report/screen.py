"""The screen: one table of what ran, with every verdict, and what was not run."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kvmodel.contract import Discipline
from kvproof.plan import Cell, Plan, PlannedRow
from kvproof.report.coverage import coverage, merged
from kvproof.verdict import Result, Verdict, overall, worst

GROUP_WIDTH = 11
TITLE_WIDTH = 17
CELL_WIDTH = 34
VERDICT_WIDTH = 7
MOST_NAMES = 3


@dataclass(frozen=True)
class Finished:
    """A plan that has run: `results` has one for each of `plan.jobs`, in their order; `extra` are further ones."""

    plan: Plan
    results: Sequence[Result]
    extra: Sequence[Result] = ()
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def everything(self) -> tuple[Result, ...]:
        """All results, with one SKIPPED for each cell of the plan that ran nothing; ERROR where that was required."""
        skipped = [
            Result(
                row.row.engine,
                self.plan.selection.target,
                discipline,
                "",
                None,
                Verdict.ERROR if cell.required else Verdict.SKIPPED,
                0.0,
                detail=cell.skipped,
            )
            for row in self.plan.rows
            for discipline, cell in row.cells.items()
            if cell.skipped
        ]
        return (*self.results, *self.extra, *skipped)


@dataclass(frozen=True)
class Header:
    version: str
    target: str
    commit: str
    seed: int
    cores: int
    foreign: bool = False

    def __str__(self) -> str:
        yours = "" if self.foreign else "     yours: --target MODULE:CLASS"
        cores = f"{self.cores} core{'' if self.cores == 1 else 's'}"
        commit = f"   commit {self.commit}" if self.commit else ""
        return f"kvproof {self.version}   target {self.target}{commit}   seed {self.seed}   {cores}{yours}"


def screen(header: Header, finished: Finished) -> str:
    """The whole screen, without a line break at its end."""
    plan, all_results = finished.plan, finished.everything
    disciplines = plan.selection.disciplines
    cells = _cell_texts(finished)
    groups = ["contract" if row.row.group == "contract" else _short(plan.selection.target) for row in plan.rows]
    first = max([GROUP_WIDTH, *(len(group) + 1 for group in groups)])
    second = max([TITLE_WIDTH, *(len(_title(row)) + 1 for row in plan.rows)])
    widths = {d: max([CELL_WIDTH, *(len(row[d]) + 2 for row in cells if d in row)]) for d in disciplines}
    lines = [str(header)]
    lines.append((" " * (first + second) + "".join(f"{d:<{widths[d]}}" for d in disciplines)).rstrip())
    for index, (row, texts) in enumerate(zip(plan.rows, cells, strict=True)):
        group = "" if index and groups[index] == groups[index - 1] else groups[index]
        text = "".join(f"{texts.get(d, ''):<{widths[d]}}" for d in disciplines)
        lines.append(f"{group:<{first}}{_title(row):<{second}}{text}".rstrip())
    lines += _covered(all_results)
    lines += _not_green(finished)
    lines.append(_last_line(finished, all_results))
    return "\n".join(lines)


def _short(target: str) -> str:
    return target.rpartition(":")[2] or target


def _title(row: PlannedRow) -> str:
    names = _scope_names(row)
    return f"{row.title} {names}" if row.row.group == "contract" and names else row.title


def _scope_names(row: PlannedRow) -> str:
    """The scopes in the title of a row of the contract: those of the discipline that has most."""
    return max((scope_range(_names(cell), row.row.label) for cell in row.cells.values()), key=len, default="")


def _names(cell: Cell) -> tuple[str, ...]:
    return tuple(dict.fromkeys(job.scope_name for job in cell.jobs))


def scope_range(names: Sequence[str], label: str = "") -> str:
    """`s1-s4` for consecutive scopes, else their names with commas, or the label where there is one. Of several, those
    that are written out, which are long, are counted."""
    if label or not names:
        return label if names else ""
    numbers = [int(name[1:]) if name[1:].isdigit() else None for name in names]
    first = numbers[0]
    if len(names) > 1 and first is not None and numbers == list(range(first, first + len(names))):
        return f"{names[0]}-{names[-1]}"
    written_out = [name for name in names if "," in name] if len(names) > 1 else []
    named = ",".join([name for name in names if name not in written_out])
    return f"{named} and {len(written_out)} written out" if written_out else named


def _cell_texts(finished: Finished) -> list[Mapping[Discipline, str]]:
    texts: list[Mapping[Discipline, str]] = []
    results = iter(finished.results)
    for row in finished.plan.rows:
        title_scopes = _scope_names(row) if row.row.group == "contract" else None
        cells: dict[Discipline, str] = {}
        for discipline, cell in row.cells.items():
            own = [next(results) for _ in cell.jobs]
            scopes = scope_range(_names(cell), row.row.label)
            # which scopes a sampling engine draws from says little; what it did is the number of samples
            suffix = scopes if row.row.exhaustive and scopes != title_scopes else ""
            cells[discipline] = _cell_text(own, cell, suffix)
        texts.append(cells)
    return texts


def _cell_text(results: Sequence[Result], cell: Cell, scopes: str) -> str:
    if not results:
        verdict = Verdict.ERROR if cell.required else Verdict.SKIPPED
        return f"{verdict:<{VERDICT_WIDTH}} {cell.skipped}" if cell.skipped else ""
    verdict = worst(result.verdict for result in results)
    words = amount(results)
    if verdict is Verdict.SKIPPED:
        words = results[0].detail.partition("\n")[0]
    elif verdict in (Verdict.REFUTED, Verdict.FRAGILE):
        failures = {result.failure.fingerprint: result.scope for result in results if result.failure is not None}
        words = ", ".join(f"{identifier} ({scope})" for identifier, scope in failures.items())
    elif scopes:
        words = f"{words} ({scopes})" if words else f"({scopes})"
    if not verdict_is_failure(verdict) and merged(results)["bytes"]:
        words += ", all bytes"
    return f"{verdict:<{VERDICT_WIDTH}} {words}".rstrip()


def verdict_is_failure(verdict: Verdict) -> bool:
    """Whether the verdict is not green."""
    return verdict in (Verdict.REFUTED, Verdict.ERROR, Verdict.UNDETERMINED, Verdict.COUNTEREXAMPLE_TO_INDUCTION)


def amount(results: Sequence[Result]) -> str:
    """How much was done, in the unit of the engine: `33,614 states`, `473/473`, `12,000 commands`."""
    counts = merged(results)
    if "safety" in counts:
        how = f", {counts['afresh']:,} proved again" if counts["afresh"] else ", certified"
        return f"{counts['safety']}/{counts['planned_safety']} safety{how if counts['certified'] else ''}"
    if "edges" in counts:
        return _of(counts, "edges")
    for unit in ("commands", "copies"):
        if unit in counts:
            return f"{_of(counts, unit)} {unit}"
    states = [result.states for result in results if result.states is not None]
    return f"{sum(states):,} states" if states else ""


def _of(counts: Mapping[str, int], name: str) -> str:
    """An amount, with the planned one beside it where that says something."""
    planned = counts.get(f"planned_{name}")
    if planned is None or (name != "edges" and planned == counts[name]):
        return f"{counts[name]:,}"
    return f"{counts[name]:,}/{planned:,}"


def _covered(results: Sequence[Result]) -> Iterator[str]:
    covered = coverage(results)
    if not covered:
        return
    words = []
    if covered.actions.total:
        words.append(f"{covered.actions} actions")
    if covered.guards.total:
        words.append(f"{covered.guards} guard outcomes")
    text = ", ".join(words)
    if covered.fields.total:
        text += f"{'; ' if text else ''}compared {covered.fields} view fields"
    counts = merged(results)
    asked, passed_over = counts["pairs with invariants"], counts["pairs without invariants"]
    if asked:
        sampled = f" of {asked + passed_over:,}" if passed_over else ""
        text += f"; invariants of the proofs at {asked:,}{sampled} pairs"
    yield f"{'covered':<{GROUP_WIDTH}}{text}"


def _not_green(finished: Finished) -> Iterator[str]:
    """A line for each reason why something is not green, unless it has a report of its own; also for what is known."""
    named = [*zip(map(str, finished.plan.jobs), finished.results, strict=True)]
    named += [(result.engine, result) for result in finished.extra]
    reasons: dict[tuple[Verdict, str], list[str]] = {}
    for name, result in named:
        refuted = result.verdict is Verdict.REFUTED and result.failure is not None
        told = verdict_is_failure(result.verdict) or result.verdict in (Verdict.FRAGILE, Verdict.KNOWN, Verdict.FIXED)
        if told and not refuted:
            reason = result.detail.partition("\n")[0] or "no reason given"
            reasons.setdefault((result.verdict, reason), []).append(name)
    for (verdict, reason), names in reasons.items():
        yield f"{verdict} {some(names)}: {reason}"


def some(names: Sequence[str]) -> str:
    """The names, or the first few of many and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:MOST_NAMES])} and {more} more"


def _last_line(finished: Finished, results: Sequence[Result]) -> str:
    verdict = overall(results)
    violations = {r.failure.fingerprint for r in results if r.failure is not None and r.verdict is Verdict.REFUTED}
    cut = sum(result.verdict is Verdict.UNDETERMINED for result in results)
    parts = [f"{verdict} in {_duration(finished.seconds)}"]
    if violations:
        parts.append(f"{len(violations)} violation{'' if len(violations) == 1 else 's'}, shown below")
    if finished.interrupted:
        parts.append(f"interrupted, {cut} cut short; what was found is kept")
    elif cut:
        parts.append(f"{cut} cut short")
    elif not verdict_is_failure(verdict):
        parts.append("nothing was cut short")
    return "; ".join(parts) + "." + ("" if verdict_is_failure(verdict) else _sampling(finished))


def _sampling(finished: Finished) -> str:
    """Which engines sample: `PASSED` promises no more than they did."""
    jobs = zip(finished.plan.jobs, finished.results, strict=True)
    ran_titles = {job.title for job, result in jobs if result.verdict is not Verdict.SKIPPED}
    ran = [row.row for row in finished.plan.rows if row.title in ran_titles]
    sampling = list(dict.fromkeys(row.engine for row in ran if not row.exhaustive))
    if not sampling:
        return ""
    rest = "; the rest is exhaustive as stated" if any(row.exhaustive for row in ran) else ""
    return f" {' and '.join(sampling)} {'sample' if len(sampling) > 1 else 'samples'}{rest}."


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


_COLOURS = {
    Verdict.REFUTED: "31;1",
    Verdict.ERROR: "31;1",
    Verdict.COUNTEREXAMPLE_TO_INDUCTION: "31;1",
    Verdict.UNDETERMINED: "33;1",
    Verdict.FRAGILE: "33",
    Verdict.KNOWN: "33",
    Verdict.SKIPPED: "2",
    Verdict.PROVED: "32",
    Verdict.PASSED: "32",
    Verdict.FIXED: "32",
}
_VERDICT = re.compile(rf"\b({'|'.join(Verdict)})\b")


def coloured(text: str, terminal: bool) -> str:
    """The text with coloured verdicts, on a terminal and unless NO_COLOR is set."""
    if not terminal or os.environ.get("NO_COLOR"):
        return text
    return _VERDICT.sub(lambda match: f"\x1b[{_COLOURS[Verdict(match[0])]}m{match[0]}\x1b[0m", text)
