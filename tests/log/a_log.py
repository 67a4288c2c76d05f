"""A log of a small sound engine, written by hand: a request is computed and stored; a reset says False while the store
is in flight, and True when it has been reported; then the request is aborted."""

import copy
import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]

HEADER: Line = {
    "kvproof_log": 1,
    "engine": "by hand",
    "contract": {"discipline": "pinning"},
    "sizes": {"device_blocks": 3, "host_blocks": 2, "workers": 2},
    "runs": "unrecorded",
}

LINES: tuple[Line, ...] = (
    {"do": {"verb": "submit", "request": "chat-1"}, "keys": ["hello"]},
    {
        "do": {"verb": "schedule"},
        "did": [
            {"action": "Admit", "request": "chat-1", "fresh": [2]},
            {"action": "Launch", "computes": [["chat-1", 0, 1]], "stores": [[None, [[2, 1, "hello"]]]]},
        ],
        "seen": {"device_refs": [0, 0, 2], "host_refs": [0, 1], "device_free": [0, 1]},
    },
    {"do": {"verb": "handle_output"}, "seen": {"device_keys": [None, None, "hello"]}},
    {"do": {"verb": "report", "worker": 1, "job": 0}, "seen": {"jobs": {"0": {"awaiting": [0]}}}},
    {
        "do": {"verb": "reset", "meaning": "invalidate", "requests": "preempt"},
        "answered": False,
        "seen": {
            "device_refs": [0, 0, 1],
            "host_keys": [None, None],
            "requests": {"chat-1": {"phase": "WAITING", "table": []}},
            "jobs": {"0": {"state": "ABANDONED"}},
        },
    },
    {"do": {"verb": "report", "worker": 0, "job": 0}, "seen": {"device_refs": [0, 0, 0], "jobs": {}}},
    {"do": {"verb": "reset", "meaning": "invalidate", "requests": "preempt"}, "answered": True},
    {"do": {"verb": "abort", "request": "chat-1"}, "seen": {"requests": {"chat-1": {"phase": "DONE"}}}},
)


def lines() -> list[Line]:
    """A copy, to be changed."""
    return copy.deepcopy(list(LINES))


def written(folder: Path, those: list[Line], header: Line = HEADER) -> Path:
    path = folder / "engine.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *those)), encoding="utf-8")
    return path
