"""Files that are none: made from sound ones, the same each time, each with a name that says what is wrong with it."""

import copy
import json
from collections.abc import Iterator
from typing import Any, cast

from tests.log.a_log import HEADER, LINES

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.targets.command import Command
from kvproof.trace import itf
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

TRACE = Trace(
    contract=Contract("pinning"),
    scope=Scope(2, 1, 1, ("ab",)),
    scope_name="s1",
    target="kvoffload",
    device="ledger",
    commands=(Command("submit", (0,)), Command("schedule"), Command("run", (0, "compute"))),
    verdict=Verdict.REFUTED,
    property="no-double-free",
    note="a note",
)
SOUND = itf.to_text(TRACE)

WRONG: tuple[Any, ...] = (
    None, True, -1, 1.5, 2**80, "", "no such word", "\u202egnp.exe", "\x1b[2J", "\ud800", "x" * 100_000, [], {}, [[0]],
    {"a": 0},
)  # fmt: skip
"""Values that stand where others belong."""


def broken_text(sound: str) -> Iterator[tuple[str, bytes]]:
    """What is wrong with any text file of JSON: cut off, deep, no JSON, no UTF-8, with keys twice."""
    whole = sound.encode()
    for part in range(40):
        yield f"cut off after {part}/40", whole[: len(whole) * part // 40]
    for depth in (33, 1_000, 100_000):
        yield f"{depth} lists deep", b"[" * depth + b"]" * depth
        yield f"{depth} records deep", b'{"a":' * depth + b"0" + b"}" * depth
        yield f"{depth} deep inside", whole.replace(b'"a note"', b"[" * depth + b"]" * depth)
    for word in ("NaN", "Infinity", "-Infinity", "nan", "1e999", "'x'", "undefined", "0x10", "01", "1" * 5_000):
        yield f"{word[:9]} for a text", whole.replace(b'"a note"', word.encode())
        yield f"{word[:9]} for a number", whole.replace(b'"schema": 1', b'"schema": ' + word.encode())
    for junk in (b"\xff\xfe", b"\x00", b"\xc3\x28", b"\xed\xa0\x80", "\N{ZERO WIDTH NO-BREAK SPACE}".encode(), b"\x80"):
        yield f"begins with {junk!r}", junk + whole
        yield f"has {junk!r} in it", whole.replace(b"a note", junk)
    for tail in (b"{}", b"]", b",", b"\x00", whole):
        yield f"goes on with {tail[:9]!r}", whole + tail
    for key in ("schema", "seed", "commit", "verdict"):
        name = f'"{key}":'.encode()
        yield f"{key} twice", whole.replace(name, name + b"0," + name)
    yield "utf-16", sound.encode("utf-16")
    yield "a million records", b"[" + b",".join([b"{}"] * 1_000_000) + b"]"


FREE = (("#meta", "format"), ("#meta", "format-description"))
"""Places that other tools read, and we do not."""


def broken_traces() -> Iterator[tuple[str, bytes]]:
    """What is wrong with a trace alone: a value of another kind in any of its places, or none there."""
    yield from broken_text(SOUND)
    data = json.loads(SOUND)
    for place in _places(data):
        if place[:1] == ("vars",) or place[:2] in FREE or (place[:1] == ("states",) and "#meta" in place):
            continue
        for value in WRONG:
            changed = _with(data, place, value)
            yield f"{'.'.join(map(str, place)) or 'the file'}: {value!r:.20}", json.dumps(changed).encode()
    for verb in ("no such verb", "start", "__class__", "Submit", "submit "):
        yield f"verb {verb}", SOUND.replace('"submit"', f'"{verb}"').encode()


def broken_logs() -> Iterator[tuple[str, bytes]]:
    """What is wrong with a log: the same in any of its places. Some make sense after all."""
    data = [HEADER, *LINES]
    for place in _places(data):
        for value in WRONG if place else ():
            lines = cast("list[object]", _with(data, place, value))
            yield (
                f"{'.'.join(map(str, place))}: {value!r:.20}",
                "".join(json.dumps(line) + "\n" for line in lines).encode(),
            )


def _places(data: object, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield here
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _places(value, (*here, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _places(value, (*here, index))


def _with(data: Any, place: tuple[str | int, ...], value: object) -> object:
    if not place:
        return value
    changed = copy.deepcopy(data)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return changed


KNOWN: tuple[bytes, ...] = (
    b"no-id\n", b"7c1f9\n", b"7c1f9e0\n", b"7C1F9E\n", b"../../etc/passwd\n", b"7c1f9e\n7c1f9e\n", b"\xff\xfe", b"\x00",
    "７c1f9e".encode(), b"7c1f9e \x1b[2J\n", "7c1f9e \u202e x".encode(), b"{}", b"x" * 2_000_000, b"<script>\n",
    b"7c1f9e\x00\n", "7c1f9e\u2028x".encode(), b"\n" * 10 + b"zzzzzz", b"7c1f9e," * 10,
)  # fmt: skip
"""Files for --known."""

PYPROJECTS: tuple[bytes, ...] = (
    b"[tool.kvproof", b"[tool.kvproof]\ntarget = 1\n", b"[tool.kvproof]\ntarget = []\n", b"[tool.kvproof]\nx = 1\n",
    b"[tool]\nkvproof = 1\n", b"tool = 1\n", b"[tool.kvproof]\ntarget = nan\n", b"\xff", b"[tool.kvproof]\n" * 2,
    b"[tool.kvproof]\ntarget = 'a'\ntarget = 'b'\n", b"x = " + b"[" * 5_000 + b"]" * 5_000, b"#" * 2_000_000,
    b"[tool.kvproof]\ntarget = '../../etc/passwd'\n", b"[tool.kvproof]\ntarget = ''\n", b"\x00",
    b"[tool.kvproof]\ntarget = 'os:system'\n", b"[tool.kvproof]\ntarget = '/etc/passwd.py:Engine'\n",
    b"[tool.kvproof]\ntarget = \"\\u202Ex\"\n", b"[tool.kvproof]\ntarget = '<script>'\n", b"a" * 500_000,
    b"[tool.kvproof]\ntarget = '" + b"x" * 900_000 + b"'\n", b"[[tool.kvproof]]\ntarget = 'a'\n",
)  # fmt: skip

NAMES: tuple[str, ...] = (
    "..", "../..", "../../etc/passwd", "/", "/etc/passwd", "~", "", " ", ".", "7c1f9e/../..", "7c1f9e\n", "\x1b[2J",
    "con", "\u202eegami", "x" * 5_000, "a/" * 3_000, "file:///etc/passwd", "http://localhost/7c1f9e", "-", "$(id)",
    "7c1f9e; rm -rf .", "%2e%2e%2f", "\\\\server\\share", "\ud800", "\x00", "7c1f9e\x00",
)  # fmt: skip
"""What may stand in the place of an id."""

CERTIFICATES: tuple[bytes, ...] = (
    b"", b"{", b"[]", b"null", b'{"pinning": 1}', b'{"pinning": {}}', b"\xff", b"[" * 100_000, b'{"pinning": []}',
    b"x" * 100_000, b"NaN", b"1" * 5_000, b" " * 1_100_000,
    b'{"pinning": {"seal": 1, "seeds": [], "safety": 1, "theorems": 1, "obligations": 1, "asked": {}}}',
    b'{"pinning": {"seal": "", "seeds": ["<script>"], "safety": 1, "theorems": 1, "obligations": 1, "asked": {}}}',
    b'{"pinning": {"seal": "", "seeds": [0], "safety": "1", "theorems": 1, "obligations": 1, "asked": {}}}',
    b'{"pinning": {"seal": "", "seeds": [0], "safety": 1, "theorems": 1, "obligations": 1, "asked": []}}',
    b'{"pinning": {"seal": "", "seeds": [0], "safety": 1, "theorems": 1, "obligations": 1, "asked": {"Wake": 1}}}',
    b'{"pinning": {"seal": "", "seeds": [0], "safety": 1, "theorems": 1, "obligations": 1, "asked": {"a": {"b": 1}}}}',
    b'{"pinning": {"seal": "", "seeds": [0], "safety": 1, "theorems": 1, "obligations": 1}}',
)  # fmt: skip
