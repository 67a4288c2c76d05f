"""The red screen: one violation, from the property that it breaks to the command that replays it."""

from itertools import zip_longest

from kvproof.failure import Failure
from kvproof.report.screen import some
from kvproof.targets.command import describe_all
from kvproof.targets.registry import MACHINE, is_ours, to_type

COMMAND_WIDTH = 20
"""The column of commands is at least so wide, in characters."""

MOST_COMMANDS = 60
"""Longer traces are shown from both ends."""


def failure_text(
    failure: Failure, *, saved: str | None = None, replay: str | None = None, also: tuple[str, ...] = ()
) -> str:
    """The report of one violation, without a line break at its end.

    saved   the folder where its trace is kept, or None if it is not
    replay  what `kvproof replay` takes for it, where that is not its id
    also    which other jobs have found the same violation
    """
    return "\n".join(
        [
            _headline(failure),
            failure.sentence,
            *_excluded(failure),
            *_commands(failure),
            *([f"Also found by {some(also)}."] if also else []),
            *reasons(failure),
            *_ending(saved, replaying(failure, replay)),
        ]
    )


def replaying(failure: Failure, name: str | None = None) -> str:
    """The command that replays it. name: what the verb takes for it, where that is not its id."""
    return f"kvproof replay {name or failure.fingerprint}{_named_target(failure.target)}"


def _named_target(target: str) -> str:
    """The option that replaying needs: the code of a foreign target is only run when the command line names it."""
    return "" if is_ours(target) or target == MACHINE else f" --target {to_type(target)}"


def _headline(failure: Failure) -> str:
    where = ", ".join(
        word
        for word in (failure.target, failure.discipline, failure.scope_name, failure.engine, failure.device)
        if word
    )
    count = len(failure.commands)
    length = f"{count:,} command{'' if count == 1 else 's'}" + (f" ({failure.minimal})" if failure.minimal else "")
    verdict = "FRAGILE" if failure.fault else "REFUTED"
    return f"{verdict} {failure.property}   {where}   {length}   id {failure.fingerprint}"


def _excluded(failure: Failure) -> list[str]:
    """Why it is no violation."""
    if not failure.fault:
        return []
    fault = failure.fault.replace("_", " ")
    return [f"It takes a fault ({fault}) that the target's contract with its environment excludes: no violation."]


def _commands(failure: Failure) -> list[str]:
    words = describe_all(failure.commands, failure.scope)
    digits = len(str(len(words)))
    width = max(COMMAND_WIDTH, *map(len, words)) if words else COMMAND_WIDTH
    half = MOST_COMMANDS // 2
    hidden = range(half, len(words) - half) if len(words) > MOST_COMMANDS else range(0)
    lines: list[str] = []
    for index, (word, note) in enumerate(zip_longest(words, failure.notes[: len(words)], fillvalue="")):
        if len(hidden) and index == hidden.start:
            lines.append(f"  ... {len(hidden):,} more, all in the trace")
        if index in hidden and index != failure.step:
            continue
        mark = ">" if index == failure.step else " "
        lines.append(f"{mark} {index + 1:>{digits}} {word:<{width}} {note}".rstrip())
        if index == failure.step:
            lines += _differences(failure, " " * (digits + 3))
    return lines


def _differences(failure: Failure, indent: str) -> list[str]:
    """Contract against target, one column for each thing that differs, or one line each where that is too wide."""
    pairs = list(zip_longest(failure.contract_lines, failure.target_lines, fillvalue="-"))
    if not pairs:
        return []
    names = ("contract", failure.target.rpartition(":")[2] or failure.target)
    first = max(map(len, names)) + 2
    columns = [max(map(len, pair)) for pair in pairs]
    if len(indent) + 2 + first + sum(columns) + 3 * len(columns) <= 160:
        sides = (failure.contract_lines, failure.target_lines)
        return [
            (
                f"{indent}  {name:<{first}}"
                + "   ".join(
                    f"{cell:<{column}}" for cell, column in zip([*side, *["-"] * len(pairs)], columns, strict=False)
                )
            ).rstrip()
            for name, side in zip(names, sides, strict=True)
        ]
    return [f"{indent}  {name:<{first}}{cell}" for pair in pairs for name, cell in zip(names, pair, strict=True)]


def reasons(failure: Failure) -> list[str]:
    """The rule that decides it with its source, and what may come of it; no line where neither is known."""
    sentences = []
    if failure.rule:
        sentences.append(f"Rule: {failure.rule}" + (f", from {failure.source}." if failure.source else "."))
    if failure.next_danger:
        sentences.append(f"Next danger: {failure.next_danger.rstrip('.')}.")
    return [" ".join(sentences)] if sentences else []


def _ending(saved: str | None, replay: str) -> list[str]:
    if saved is None:
        return ["The trace was not saved."]
    return [f"Saved {saved}. Replay: {replay}"]
