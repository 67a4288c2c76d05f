"""A failure as a test that needs no kvproof: what an adapter says of how its engine is asked for the same directly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvmodel.scope import Scope, sequences
from kvproof.targets.command import VERBS, Command, describe, named_arguments
from kvproof.targets.divergence import Divergence
from kvproof.targets.view import View, expected


@dataclass(frozen=True)
class Alone:
    """What a target class may have as `alone`. Lines of Python, in which words in braces are replaced: names of sizes
    of the scope in `begin`, of arguments of the verb in `calls`.

    begin  imports the engine, and makes one: lines that the test begins with
    calls  by verb, an expression that does it, and whose value is the answer; of submit {keys} are all keys of the
           request too, and {prompt} how many of them its prompt has
    seen   by field of the view, an expression that has the same; braces are left as they are
    """

    begin: str
    calls: Mapping[str, str]
    seen: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        """Raises ValueError for a verb or a field that there is not, and for braces that stand for nothing."""
        try:
            self.begin.format_map(Scope(1, 1, 1, ("a",))._asdict())
            for verb, call in self.calls.items():
                words: dict[str, Any] = {parameter.name: "0" for parameter in VERBS[verb]}
                of_submit = {"keys": (1,), "prompt": 1} if verb == "submit" else {}
                call.format_map(words | of_submit)
        except (LookupError, ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"alone says what there is not: {error}") from None
        for name in self.seen:
            if name not in View._fields:
                raise ValueError(f"alone shows {name!r:.60}, which is no field of the view")


class Unsaid(LookupError):
    """What is to be done, or to be seen, the adapter does not say."""


def direct_test(
    alone: Alone, scope: Scope, commands: Sequence[Command], notes: Sequence[str], divergence: Divergence, name: str
) -> str:
    """The text of a test that fails as the target did, at the last of these commands; empty where what is wrong cannot
    be said in the adapter's words. Only they, numbers and words of ours get into it.

    notes  what each command led to, as reports say it; name: of the test
    """
    if not commands:
        return ""
    *before, last = commands
    try:
        lines = alone.begin.format_map(scope._asdict()).splitlines()
        noted = (*notes, *[""] * len(before))
        for number, (command, note) in enumerate(zip(before, noted, strict=False), start=1):
            call = f"{_call(alone, command, scope)}  # {number} {describe(command, scope)}"
            lines += ["with suppress(Exception):", f"    {call}"] if note.startswith("refused: ") else [call]
        lines += _ending(alone, last, scope, divergence, len(commands))
    except Unsaid:
        return ""
    imports = ["from contextlib import suppress", "", ""] if "with suppress(Exception):" in lines else []
    return "\n".join([*imports, f"def test_{name}() -> None:", *(f"    {line}" for line in lines), ""])


def _call(alone: Alone, command: Command, scope: Scope) -> str:
    if command.verb not in alone.calls:
        raise Unsaid(command.verb)
    words: dict[str, Any] = {key: repr(value) for key, value in named_arguments(command).items()}
    if command.verb == "submit":
        keys, number = sequences(scope), int(command.args[0])
        words |= {"keys": keys.total[number], "prompt": len(keys.prompt[number])}
    return alone.calls[command.verb].format_map(words)


def _ending(alone: Alone, command: Command, scope: Scope, divergence: Divergence, number: int) -> list[str]:
    """The last command, and what should hold after it and does not."""
    call, said = _call(alone, command, scope), f"  # {number} {describe(command, scope)}"
    kind = divergence.cause[0]
    if kind in ("crash", "refused"):  # the call raises
        return [call + said]
    if kind == "forbidden" and command.verb == "reset":
        answered = divergence.target_lines[0].rpartition(" ")[2]
        if answered in ("True", "False"):
            return [f"assert ({call}) is not {answered}{said}"]
    if kind != "view" or divergence.contract_state is None or divergence.target_state is None:
        raise Unsaid(kind)
    right, wrong = expected(divergence.contract_state), expected(divergence.target_state)
    parted = [name for name in View._fields if getattr(right, name) != getattr(wrong, name) and name in alone.seen]
    if not parted:
        raise Unsaid(kind)
    return [call + said, *(_compared(alone.seen[name], name, getattr(right, name)) for name in parted)]


def _compared(expression: str, name: str, value: Any) -> str:
    """In which order blocks are free is an engine's own affair."""
    if isinstance(value, bool):
        return f"assert ({expression}) is {value}"
    if name.endswith("_free"):
        return f"assert sorted({expression}) == {sorted(value)}"
    return f"assert tuple({expression}) == {_plain(value)}"


def _plain(value: Any) -> Any:
    """Without names of ours, which the test does not know: a named tuple equals a plain one."""
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value
