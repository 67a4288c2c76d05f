"""The transcript of a log: what was asked of the engine and what ran, as the commands of a trace, at a scope that has
just what they need. Whoever replays it asks the same of an engine again."""

import string
from collections.abc import Sequence

from kvmodel.errors import BadScope
from kvmodel.scope import REQUESTS, SYMBOLS_PER_PROMPT, Scope, validated
from kvproof.shrinking.changes import needed
from kvproof.targets.command import VERBS, Command
from kvproof.trace.trace import MAX_COMMANDS

SCOPE_NAME = "as logged"
"""What reports call the scope of a transcript: no text after `--scope` stands for it."""


OF_REQUEST = {
    verb: at
    for verb, parameters in VERBS.items()
    for at, parameter in enumerate(parameters)
    if parameter.name == "request"
}
"""Verbs with a request, and which of their arguments it is."""


class Transcript:
    """Grows with the log. Requests are numbered as they come, whatever place each has in the machine.

    lacking  why it is no trace, in a sentence's second half; empty: it is one so far
    """

    def __init__(self, scope: Scope) -> None:
        self.lacking = ""
        self.commands: list[Command] = []
        self._scope = scope
        self._number_of: dict[int, int] = {}
        self._prompts: list[tuple[str, ...]] = []
        self._decoded: list[tuple[str, ...]] = []

    def comes(self, place: int, keys: Sequence[str], decoded: Sequence[str]) -> None:
        """A request is submitted, which has this place from now on."""
        if len(self._prompts) == REQUESTS:
            self._lacks(f"there are more than {REQUESTS:,} requests in the log")
        elif max(len(keys), len(decoded)) > SYMBOLS_PER_PROMPT:
            self._lacks(f"a request of the log has more than {SYMBOLS_PER_PROMPT} blocks")
        if not self.lacking:
            self._number_of[place] = len(self._prompts)
            self._prompts.append(tuple(keys))
            self._decoded.append(tuple(decoded))

    def goes_on(self, commands: Sequence[Command]) -> None:
        """What was asked, or ran, in the machine's terms: places stand for requests."""
        if len(self.commands) + len(commands) > MAX_COMMANDS:
            self._lacks(f"the log has more than {MAX_COMMANDS:,} commands")
        if not self.lacking:
            self.commands += [self._renumbered(command) for command in commands]

    def fails_in_part(self) -> None:
        """A copy failed in several blocks and not in all."""
        self._lacks("a copy of the log failed in several of its blocks and not in all")

    def _lacks(self, why: str) -> None:
        self.lacking = self.lacking or f"{why}, which a trace cannot say"
        self.commands.clear()

    def _renumbered(self, command: Command) -> Command:
        at = OF_REQUEST.get(command.verb)
        if at is None:
            return command
        args = list(command.args)
        args[at] = self._number_of[int(args[at])]
        return Command(command.verb, tuple(args))

    def scope(self) -> Scope:
        """The scope at which the commands can be given. Raises BadScope if none has all of them."""
        whole = [before + after for before, after in zip(self._prompts, self._decoded, strict=True)]
        repeats = not _are_prefixes(whole)
        texts = _symbols(whole) if repeats else _paths(whole)
        cut = [len(prompt) for prompt in self._prompts]
        decoded = tuple(text[at:] for text, at in zip(texts, cut, strict=True))
        scope = self._scope._replace(
            prompts=tuple(text[:at] for text, at in zip(texts, cut, strict=True)),
            decoded=decoded if any(decoded) else (),
        )
        verbs = {command.verb for command in self.commands}
        allowed = needed(scope, self.commands) | {"lookups": "lookup" in verbs, "repeats": repeats}
        return validated(scope._replace(**allowed))


def _are_prefixes(sequences: Sequence[tuple[str, ...]]) -> bool:
    """Whether each key always has the same keys before it, and so stands for them too."""
    before: dict[str, str] = {}
    return all(
        before.setdefault(key, previous) == previous
        for keys in sequences
        for previous, key in zip(("", *keys), keys, strict=False)
    )


def _paths(sequences: Sequence[tuple[str, ...]]) -> list[str]:
    """Texts with equal beginnings where the keys begin alike: `ab` and `ac`, `x`."""
    symbol_of: dict[str, str] = {}
    used: dict[str, int] = {}
    for keys in sequences:
        for depth, (previous, key) in enumerate(zip(("", *keys), keys, strict=False)):
            if key not in symbol_of:
                used[previous] = used.get(previous, -1) + 1
                symbol_of[key] = ALPHABET[(depth + used[previous]) % len(ALPHABET)]
    return ["".join(symbol_of[key] for key in keys) for keys in sequences]


def _symbols(sequences: Sequence[tuple[str, ...]]) -> list[str]:
    """Texts with one symbol for each key, wherever it stands."""
    symbols = iter(ALPHABET)
    symbol_of: dict[str, str] = {}
    for keys in sequences:
        for key in keys:
            if key not in symbol_of:
                symbol_of[key] = next(symbols, "")
                if not symbol_of[key]:
                    raise BadScope(f"there are more than {len(ALPHABET):,} keys, each at several positions")
    return ["".join(symbol_of[key] for key in keys) for keys in sequences]


ALPHABET = string.ascii_letters + string.digits + "".join(map(chr, range(0x4E00, 0x4E00 + 4 * REQUESTS)))
"""Symbols of prompts, those first that everybody can read. They are more than there are requests, so that no two
prompts that go on differently look alike."""
