"""A failure as a test that needs no kvproof: what an adapter says of how its engine is asked for the same directly."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from kvmodel.contract import Contract
from kvmodel.scope import Scope, sequences
from kvproof.targets.command import VERBS, Command, describe, named_arguments
from kvproof.targets.divergence import Divergence
from kvproof.targets.view import View, expected


@dataclass(frozen=True)
class Alone:
    """What a target class may have as `alone`. Lines of Python, in which words in braces are replaced: names of sizes
    of the scope and of modes of the contract in `begin`, of arguments of the verb in `calls`.

    begin  imports the engine, and makes one: lines that the test begins with
    calls  by verb, an expression that does it, and whose value is the answer; of submit {keys} are all keys of the
           request too, and {prompt} how many of them its prompt has; {symbols} the prompt as the scope has it, and
           {decoded} how many blocks are decoded after it (count); of drain {always} is a function that says whether
           to go on, or nothing; of reset {strict} is `, strict=True` where a reset that answered False is read so,
           or nothing
    seen   by field of the view, an expression that has the same; braces are left as they are
    owed   of an engine that is held to its obligations: by the first words of a cause, with blanks between, an
           expression that is true where the obligation is kept; braces are left as they are
    always the same of what must hold after every command, and all through a drain
    driver what the test needs beside the engine, such as the text of modules (`sources`): it stands after the test
    """

    begin: str
    calls: Mapping[str, str]
    seen: Mapping[str, str] = field(default_factory=dict[str, str])
    owed: Mapping[str, str] = field(default_factory=dict[str, str])
    always: Mapping[str, str] = field(default_factory=dict[str, str])
    driver: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a verb or a field that there is not, and for braces that stand for nothing."""
        try:
            self.begin.format_map(_sizes_and_modes(Scope(1, 1, 1, ("a",)), Contract("pinning")))
            for verb, call in self.calls.items():
                words: dict[str, Any] = {parameter.name: "0" for parameter in VERBS[verb]}
                call.format_map(
                    words | _more(verb) | (_of_submit(Scope(1, 1, 1, ("a",)), 0) if verb == "submit" else {})
                )
        except (LookupError, ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"alone says what there is not: {error}") from None
        for name in self.seen:
            if name not in View._fields:
                raise ValueError(f"alone shows {name!r:.60}, which is no field of the view")


class Unsaid(LookupError):
    """What is to be done, or to be seen, the adapter does not say. The text is a sentence without its full stop."""


_OURS = re.compile(r"^from kv(?:proof|model)\.\S+ import .*\n", re.MULTILINE)


def sources(*modules: ModuleType) -> str:
    """The text of modules of kvproof as one, each after those that it imports; without those imports, which name what
    stands there already."""
    return "\n\n".join(_OURS.sub("", inspect.getsource(module)) for module in modules)


def direct_test(
    alone: Alone,
    scope: Scope,
    contract: Contract,
    commands: Sequence[Command],
    notes: Sequence[str],
    divergence: Divergence,
    name: str,
) -> str:
    """The text of a test that fails as the target did, at the last of these commands. Only the adapter's words, numbers
    and words of ours get into it. Raises Unsaid where what is wrong cannot be said in the adapter's words.

    notes  what each command led to, as reports say it; name: of the test
    """
    if not commands:
        raise Unsaid("it fails before the first command")
    *before, last = commands
    lines = alone.begin.format_map(_sizes_and_modes(scope, contract)).splitlines()
    noted = (*notes, *[""] * len(before))
    for number, (command, note) in enumerate(zip(before, noted, strict=False), start=1):
        call = f"{_call(alone, command, scope, divergence)}  # {number} {describe(command, scope)}"
        lines += ["with suppress(Exception):", f"    {call}"] if note.startswith("refused: ") else [call]
    lines += _ending(alone, last, scope, divergence, len(commands))
    imports = ["from contextlib import suppress", "", ""] if "with suppress(Exception):" in lines else []
    driver = ["", "", *alone.driver.rstrip().splitlines()] if alone.driver else []
    return "\n".join([*imports, f"def test_{name}() -> None:", *(f"    {line}" for line in lines), *driver, ""])


def _sizes_and_modes(scope: Scope, contract: Contract) -> dict[str, Any]:
    return scope._asdict() | {mode: repr(value) for mode, value in contract._asdict().items()}


def _of_submit(scope: Scope, number: int) -> dict[str, Any]:
    keys = sequences(scope)
    decoded = len(scope.decoded[number]) if scope.decoded else scope.decode
    return {
        "keys": keys.total[number],
        "prompt": len(keys.prompt[number]),
        "symbols": repr(scope.prompts[number]),
        "decoded": decoded,
    }


def _more(verb: str, divergence: Divergence | None = None, always: str = "") -> dict[str, str]:
    """Words of some verbs that are no arguments. always: what a drain that is the last command must keep."""
    if verb == "drain":
        return {"always": f"lambda: {always}" if always else ""}
    if verb == "reset":
        is_strict = divergence is not None and divergence.property == "false-reset-serves-nothing-old"
        return {"strict": ", strict=True" if is_strict else ""}
    return {}


def _call(alone: Alone, command: Command, scope: Scope, divergence: Divergence, always: str = "") -> str:
    if command.verb not in alone.calls:
        raise Unsaid(f"the adapter does not say how the engine is asked for {command.verb!r}")
    words: dict[str, Any] = {each.name: repr(each.default) for each in VERBS[command.verb]}
    words |= {key: repr(value) for key, value in named_arguments(command).items()}
    words |= _more(command.verb, divergence, always)
    if command.verb == "submit":
        words |= _of_submit(scope, int(command.args[0]))
    return alone.calls[command.verb].format_map(words)


def _ending(alone: Alone, command: Command, scope: Scope, divergence: Divergence, number: int) -> list[str]:
    """The last command, and what should hold after it and does not."""
    cause = divergence.cause
    always = _first_words(alone.always, cause)
    call = _call(alone, command, scope, divergence, always)
    said = f"  # {number} {describe(command, scope)}"
    if cause[0] in ("crash", "refused"):  # the call raises
        return [call + said]
    if cause[0] == "reset":
        return [f"assert ({call}) is not False{said}"]
    if cause[0] == "forbidden" and command.verb == "reset":
        answered = divergence.target_lines[0].rpartition(" ")[2]
        if answered in ("True", "False"):
            return [f"assert ({call}) is not {answered}{said}"]
    owed = always or _first_words(alone.owed, cause)
    return [call + said, *([f"assert {owed}"] if owed else _seen(alone, divergence))]


def _first_words(said: Mapping[str, str], cause: Sequence[str]) -> str:
    """What is said of the most first words of a cause; empty: nothing."""
    wordings = (" ".join(cause[:words]) for words in range(len(cause), 0, -1))
    return next((said[words] for words in wordings if words in said), "")


def _seen(alone: Alone, divergence: Divergence) -> list[str]:
    """What the contract has of each field of the view that differs and can be shown."""
    right, wrong = divergence.contract_state, divergence.target_state
    if divergence.cause[0] == "view" and right is not None and wrong is not None:
        shown, other = expected(right), expected(wrong)
        parted = [name for name in alone.seen if getattr(shown, name) != getattr(other, name)]
        if parted:
            return [_compared(alone.seen[name], name, getattr(shown, name)) for name in View._fields if name in parted]
    raise Unsaid(f"the adapter has no words in which {' '.join(divergence.cause[:2])!r} could be seen without kvproof")


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
