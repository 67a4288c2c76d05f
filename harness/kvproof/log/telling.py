"""Tell where a log cannot be explained: how far it was, what is wrong, and what the contract would have allowed."""

import re
from itertools import zip_longest

from kvproof.log.follow import Follower, Stuck
from kvproof.targets.command import Command, describe, request_name

MOST_ALLOWED = 12
"""So many of the allowed commands are listed."""

_REQUEST = re.compile(r"\b(?:[xyz]|r\d+)\b")


def told(follower: Follower, stuck: Stuck, explained: int) -> str:
    """Several lines, without a line break at their end."""
    entry, divergence = stuck.entry, stuck.divergence
    lines = [
        f"{divergence.property}   line {entry.number}, after {explained:,} that are explained",
        divergence.sentence,
        f"> {entry.number} {words(follower, stuck.command, named=True)}",
    ]
    for right, seen in zip_longest(divergence.contract_lines, divergence.target_lines, fillvalue="-"):
        lines += [f"      contract  {right}", f"      log       {seen}"]
    if stuck.otherwise:
        lines.append(f"Nearest: the same, answered {not entry.answered} (answered is {entry.answered} in the log).")
    elif stuck.nearest is not None:
        lines.append(f"Nearest: {words(follower, stuck.nearest)} ({_difference(stuck.command, stuck.nearest)}).")
    names = list(dict.fromkeys([words(follower, command) for command in stuck.allowed]))
    more = f", and {len(names) - MOST_ALLOWED} more" if len(names) > MOST_ALLOWED else ""
    lines.append(f"Allowed here: {', '.join(names[:MOST_ALLOWED]) or 'nothing'}{more}.")
    return "\n".join([*lines, *legend(follower, "\n".join(lines))])


def words(follower: Follower, command: Command, named: bool = False) -> str:
    """A command as reports say it. named: of a submit, which request it was."""
    if command.verb == "submit":
        return f"submit {request_name(int(command.args[0]))}" if named else "submit another request"
    return describe(command, follower.machine.setting.scope)


def _difference(logged: Command, allowed: Command) -> str:
    for position, (mine, theirs) in enumerate(zip(logged.args, allowed.args, strict=False)):
        if mine != theirs:
            return f"argument {position + 1} is {mine} in the log, and could be {theirs}"
    return "with more arguments"


def legend(follower: Follower, text: str) -> list[str]:
    """What the log calls the requests that reports call x, y, z, r3, and so on."""
    said = set(_REQUEST.findall(text))
    names = [
        f"{request_name(place)} is {name}"
        for name, place in follower.places.of.items()
        if request_name(place) in said and request_name(place) != name
    ]
    return [f"({', '.join(names)})"] if names else []
