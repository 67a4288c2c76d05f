"""Traces on disk, in the Informal Trace Format of Apalache and Quint (ITF JSON).

State 0 is the initial state, and state i is the one after command i; the variable `command` of a state is the command
that led to it. What a trace needs beside them is in the file's `#meta`, under `kvproof`. Further variables are ignored,
so other tools may add them. Files come from other people: everything about them is bounded and checked here.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

from kvmodel import contract as contracts
from kvmodel import scope as scopes
from kvmodel.contract import Contract
from kvmodel.errors import BadScope
from kvmodel.scope import Scope
from kvproof.atomic import write_whole
from kvproof.bounded import MAX_DEPTH, Unfit, nesting, parsed, read_bounded
from kvproof.obligations.watched import READINGS
from kvproof.targets.command import VERBS, BadCommand, Command, from_names, named_arguments
from kvproof.trace.trace import MAX_COMMANDS, SCHEMA, BadTrace, Trace
from kvproof.verdict import Verdict

MAX_BYTES = 16 * 1024 * 1024
"""The largest file that is read, in bytes; our files of MAX_COMMANDS are smaller."""

MAX_CONTAINERS = 4 * MAX_COMMANDS
"""How many lists and records a file may have; ours has three for each command. A reader needs memory for each of them:
with this bound, and the one on bytes, less than 512 MiB."""

MAX_QUOTES = 30 * MAX_COMMANDS
"""How many quotation marks; ours has up to 22 for each command."""

MAX_TEXT = 500
"""The longest single text in a file, in characters."""

START = "start"
"""What stands for a command in the initial state."""


def to_text(trace: Trace) -> str:
    """The trace as ITF JSON, the same text for the same trace."""
    scope = {name: list(value) if isinstance(value, tuple) else value for name, value in trace.scope._asdict().items()}
    if not trace.scope.decoded:
        del scope["decoded"]  # most traces have none, and read as ever
    about = {
        "schema": trace.schema,
        "contract": {**trace.contract._asdict(), "environment": sorted(trace.contract.environment)},
        "scope": scope,
        "scope_name": trace.scope_name,
        "target": trace.target,
        "device": trace.device,
        "engine": trace.engine,
        "seed": trace.seed,
        "commit": trace.commit,
        "verdict": str(trace.verdict),
        "property": trace.property,
        "note": "".join(c if c.isprintable() else " " for c in trace.note)[:MAX_TEXT],
        **({"reading": trace.reading} if trace.reading else {}),
    }
    meta = {
        "format": "ITF",
        "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
        "kvproof": about,
    }
    head = json.dumps({"#meta": meta, "vars": ["command"]}, indent=2)
    commands = [{"verb": START}, *({"verb": c.verb, **named_arguments(c)} for c in trace.commands)]
    states = ",\n".join(
        "    " + json.dumps({"#meta": {"index": index}, "command": command}) for index, command in enumerate(commands)
    )
    return head.removesuffix("\n}") + ',\n  "states": [\n' + states + "\n  ]\n}\n"


def write(path: Path, trace: Trace) -> None:
    """Write the trace to a file, as a whole or not at all. Raises OSError, and BadTrace if it is too long."""
    if len(trace.commands) > MAX_COMMANDS:
        raise BadTrace(f"a trace of {len(trace.commands):,} commands is longer than {MAX_COMMANDS:,}; shrink it first")
    write_whole(path, to_text(trace))


def read(path: Path) -> Trace:
    """The trace in a file. Raises BadTrace for everything that is wrong with it."""
    return from_bytes(_bytes_of(path), str(path))


def _bytes_of(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES)
    except Unfit as error:
        raise BadTrace(f"trace {path} {error}; name a file that kvproof wrote") from None


def from_bytes(content: bytes, name: str) -> Trace:
    """The trace that a file's content stands for; `name` says in errors where it is from. Raises BadTrace."""
    if not content.strip():
        raise BadTrace(f"trace {name} is empty; record it again")
    quotes = content.count(b'"')
    if quotes > MAX_QUOTES:
        raise BadTrace(f"trace {name} has {quotes:,} quotation marks, and at most {MAX_QUOTES:,} are read")
    depth, containers = nesting(content)
    if depth > MAX_DEPTH:
        raise BadTrace(
            f"trace {name} is nested {depth:,} deep, and a trace never more than {MAX_DEPTH}; it is no trace"
        )
    if containers > MAX_CONTAINERS:
        raise BadTrace(f"trace {name} has {containers:,} lists and records, and at most {MAX_CONTAINERS:,} are read")
    try:
        data = parsed(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadTrace(f"trace {name} is not UTF-8 text (byte {error.start}); it is no trace") from None
    except json.JSONDecodeError as error:
        ended = error.pos >= len(content.rstrip()) - len("fals") and not error.msg.startswith("Extra data")
        ended = ended or error.msg.startswith("Unterminated string")
        what = "ends in the middle (was it cut off?)" if ended else f"is not JSON ({error.msg})"
        raise BadTrace(f"trace {name} {what} at line {error.lineno}, column {error.colno}; record it again") from None
    except (ValueError, RecursionError) as error:
        raise BadTrace(f"trace {name} is not JSON that can be read ({error}); record it again") from None
    return _Reader(name).trace(data)


class _Reader:
    """Turns parsed JSON into a trace, and says in errors where it was."""

    def __init__(self, name: str) -> None:
        self.name = name

    def trace(self, data: object) -> Trace:
        file = self.record(data, "the file")
        about = self.record(self.record(file.get("#meta"), "#meta").get("kvproof"), "#meta.kvproof")
        schema = self.number(about, "schema")
        if schema > SCHEMA:
            self.bad(f"has schema {schema}, and this kvproof reads up to {SCHEMA}; upgrade kvproof")
        if schema < 1:
            self.bad(f"has schema {schema}, and schemas start at 1; record it again")
        scope = self.scope(self.record(about.get("scope"), "scope"))
        return Trace(
            contract=self.contract(self.record(about.get("contract"), "contract")),
            scope=scope,
            scope_name=self.text(about, "scope_name"),
            target=self.text(about, "target"),
            commands=self.commands(file.get("states"), scope),
            verdict=self.verdict(about),
            property=None if about.get("property") is None else self.text(about, "property"),
            engine=self.text(about, "engine"),
            device=self.text(about, "device"),
            seed=self.number(about, "seed"),
            commit=self.text(about, "commit"),
            note=self.text(about, "note"),
            reading=self.reading(about),
            schema=schema,
        )

    def contract(self, fields: Mapping[str, object]) -> Contract:
        self.only(fields, Contract._fields, "contract")
        values: dict[str, Any] = {"discipline": self.text(fields, "discipline")}
        for field, value in fields.items():  # an older file lacks modes that are newer than it: they had their defaults
            if field == "environment":
                values[field] = frozenset(self.texts(value, field))
            elif isinstance(Contract._field_defaults.get(field), int):
                values[field] = self.number(fields, field)
            else:
                values[field] = self.text(fields, field)
        try:
            return contracts.validated(Contract(**values))
        except BadScope as error:
            self.bad(f"has a contract that makes no sense: {error}")

    def scope(self, fields: Mapping[str, object]) -> Scope:
        self.only(fields, Scope._fields, "scope")
        values: dict[str, Any] = {}
        for field, value in fields.items():
            default = Scope._field_defaults.get(field)
            if field in ("prompts", "meanings", "tiers", "decoded"):
                values[field] = self.texts(value, field)
            elif isinstance(default, bool):
                if not isinstance(value, bool):
                    self.bad(f"has {field} {value!r:.40} in its scope, and not true or false; record it again")
                values[field] = value
            else:
                values[field] = self.number(fields, field)
        for field in Scope._fields:
            if field not in values and field not in Scope._field_defaults:
                self.bad(f"lacks {field} in its scope; record it again")
        try:
            return scopes.validated(Scope(**values))
        except BadScope as error:
            self.bad(f"has a scope that makes no sense: {error}")

    def commands(self, states: object, scope: Scope) -> tuple[Command, ...]:
        if not isinstance(states, list) or not states:
            self.bad("has no list of states; record it again")
        if len(states) - 1 > MAX_COMMANDS:
            self.bad(
                f"has {len(states) - 1:,} commands, and at most {MAX_COMMANDS:,} are read; cut it into shorter ones"
            )
        start, *rest = (self.record(state, f"state {index}") for index, state in enumerate(states))
        if self.record(start.get("command"), "command of state 0").get("verb") != START:
            self.bad(f"does not begin with the command {START!r} in state 0; record it again")
        return tuple(self.command(state, index, scope) for index, state in enumerate(rest, start=1))

    def command(self, state: Mapping[str, object], index: int, scope: Scope) -> Command:
        fields = dict(self.record(state.get("command"), f"command of state {index}"))
        verb = fields.pop("verb", None)
        if not isinstance(verb, str) or verb not in VERBS:
            self.bad(f"has an unknown action {verb!r:.60} in state {index}; upgrade kvproof, or correct the name")
        try:
            return from_names(verb, fields, scope)
        except BadCommand as error:
            self.bad(f"has a wrong command in state {index}: {error}")

    def verdict(self, about: Mapping[str, object]) -> Verdict:
        text = self.text(about, "verdict")
        try:
            return Verdict(text)
        except ValueError:
            self.bad(f"has verdict {text!r:.40}, which does not exist; upgrade kvproof")

    def reading(self, about: Mapping[str, object]) -> str:
        """Most traces have none."""
        reading = self.text(about, "reading") if "reading" in about else ""
        if reading and reading not in READINGS:
            self.bad(f"has reading {reading!r:.40}, which does not exist; it is one of {', '.join(READINGS)}")
        return reading

    def record(self, value: object, where: str) -> Mapping[str, object]:
        if not isinstance(value, dict):
            self.bad(f"has no record where {where} belongs; record it again")
        return cast(dict[str, object], value)

    def only(self, fields: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
        for field in fields:
            if field not in known:
                self.bad(f"has {field!r:.40} in its {where}, which this version does not know; upgrade kvproof")

    def number(self, fields: Mapping[str, object], field: str) -> int:
        value = fields.get(field)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            self.bad(f"has {field} {value!r:.40}, and not a number from 0; record it again")
        return value

    def text(self, fields: Mapping[str, object], field: str) -> str:
        value = fields.get(field)
        if not isinstance(value, str) or len(value) > MAX_TEXT or not (value.isprintable()):
            self.bad(
                f"has {field} {value!r:.40}, and not a printable text of at most {MAX_TEXT} characters; record it again"
            )
        return value

    def texts(self, value: object, field: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.bad(f"has {field} {value!r:.40}, and not a list of texts; record it again")
        return tuple(self.text({field: item}, field) for item in value)

    def bad(self, what: str) -> NoReturn:
        raise BadTrace(f"trace {self.name} {what}")
