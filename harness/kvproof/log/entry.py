"""One line of a log: what was asked of the engine, what it did, and what was seen of it afterwards. Data, in the log's
own names: requests and keys are texts, blocks, workers and jobs are numbers."""

from collections.abc import Mapping
from typing import NamedTuple

from kvmodel.contract import Contract
from kvmodel.scope import Scope

SCHEMA = 1
"""The newest schema of logs that this version writes and reads."""

JSON = dict[str, object]

RECORDED, UNRECORDED = "recorded", "unrecorded"


class BadLog(ValueError):
    """A log that cannot be used: one sentence says what is wrong, in which line, and what to do."""


class Header(NamedTuple):
    """The first line: which contract the engine follows, and its sizes.

    scope   its prompts are empty places, one for each request that may be there at once
    engine  what reports call the engine
    runs    whether the log has every run of an operation: RECORDED or UNRECORDED
    tokens_per_block  of an engine that goes its own way, and is held to its obligations alone; 0: the log is followed
                      through the machine
    """

    contract: Contract
    scope: Scope
    engine: str
    runs: str
    tokens_per_block: int = 0


class Entry(NamedTuple):
    """Any other line.

    number   of the line in its file, from 1
    verb, arguments  a command, as in traces, with the engine's own names of requests
    keys, decoded    of a submit: the keys of the prompt, and of the blocks that it will decode
    refused  why the engine refused; None: it did not
    crashed  what the engine failed with; None: it did not
    answered what a reset answered
    did      the engine's decisions, each a record with `action` and its choices
    seen     fields of the view that were recorded
    failed   of a report: by job, the positions of the pairs that the worker could not copy
    """

    number: int
    verb: str
    arguments: JSON
    keys: tuple[str, ...] = ()
    decoded: tuple[str, ...] = ()
    refused: str | None = None
    crashed: str | None = None
    answered: bool | None = None
    did: tuple[JSON, ...] = ()
    seen: JSON = {}  # noqa: RUF012 (never changed: an entry is a value)
    failed: Mapping[int, tuple[int, ...]] = {}
