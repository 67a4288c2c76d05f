"""Logs on disk: JSON lines, read one at a time. They come from other people: everything about them is bounded."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from kvmodel import scope as scopes
from kvmodel.contract import Contract
from kvmodel.contract import validated as validated_contract
from kvmodel.errors import BadScope
from kvmodel.scope import Scope
from kvproof.bounded import MAX_DEPTH, nesting, parsed
from kvproof.log.entry import JSON, RECORDED, SCHEMA, UNRECORDED, BadLog, Entry, Header

MAX_LINE = 1024 * 1024
"""The longest line that is read, in bytes."""

MAX_LINES = 2_000_000
"""The longest log that is read, in lines."""

MAX_TEXT = 500
"""The longest single text, in characters."""

MAX_KEYS = 4_096
"""The longest prompt, in blocks (count)."""

MAX_FAILURES = 1_000_000
"""The most blocks that failed to be copied, over all reports (count): they are known from the beginning on."""

PLACES = 64
"""Requests that may be there at once."""

MAX_RESETS = scopes.TIMES

SIZES = {"device_blocks": scopes.BLOCKS, "host_blocks": scopes.BLOCKS, "workers": scopes.WORKERS}
"""What a header says of sizes, with the largest of each."""

OPTIONAL_SIZES = {"second_blocks": scopes.BLOCKS, "window": MAX_KEYS, "lazy_window": scopes.BLOCKS}

LINE_FIELDS = ("do", "keys", "decoded", "refused", "crashed", "answered", "failed", "did", "seen", "time")
"""What a line may have. `time` is for people."""

Failed = Mapping[tuple[int, int], tuple[int, ...]]
"""By worker and job, the positions of the pairs that it could not copy."""


Wait = Callable[[], bool]
"""Waits for more of a file, and says whether to go on."""


class Lines:
    """A log in a file. Iterating reads it from the beginning, each time anew. Raises BadLog.

    wait   called where the file has no more, of a log that is still written; None: that is its end
    ended  whether the log's own end was read
    """

    def __init__(self, path: Path, wait: Wait | None = None) -> None:
        self.path = path
        self.wait = wait
        self.ended = False
        self.header = self._header()

    def __iter__(self) -> Iterator[Entry]:
        for number, record in self.records():
            yield from self._each_job(number, self._entry(number, record))

    def records(self) -> Iterator[tuple[int, JSON]]:
        """Lines as they are, with their numbers, of a log that is not for the machine."""
        self.ended = False
        wait = self.wait
        for number, record in self._records(wait=None if wait is None else lambda: not self.ended and wait()):
            if self.ended:
                self._bad(number, "comes after the end of the log; it is none of its lines")
            self.ended = self._is_end(number, record)
            if number > 1 and not self.ended:
                yield number, record

    def failures(self) -> Failed:
        """Copies that failed, which reports say: an engine learns of it when other operations may have waited for the
        copy already, and so must whoever follows the log."""
        failed: dict[tuple[int, int], tuple[int, ...]] = {}
        blocks = 0
        for number, record in self._records(containing=(b'"failed"', b"\\u")):
            if number == 1 or "failed" not in record:
                continue
            entry = self._entry(number, record)
            worker = entry.arguments["worker"]
            assert isinstance(worker, int)
            failed |= {(worker, job): positions for job, positions in entry.failed.items()}
            blocks += sum(map(len, entry.failed.values()))
            if blocks > MAX_FAILURES:
                self._bad(number, f"has a failed block too many: at most {MAX_FAILURES:,} are kept")
        return failed

    def _is_end(self, number: int, record: JSON) -> bool:
        """The last line of a log whose recorder was closed says why there are no more."""
        if "end" not in record:
            return False
        self._only(number, record, ("end", "time"))
        self._text(number, record["end"], "the end")
        return True

    def _header(self) -> Header:
        for number, record in self._records():
            return self._header_of(number, record)
        raise BadLog(f"log {self.path} is empty; record it again")

    def _records(self, containing: tuple[bytes, ...] = (b"",), wait: Wait | None = None) -> Iterator[tuple[int, JSON]]:
        if not _is_file(self.path):
            raise BadLog(f"log {str(self.path)!r:.200} is no file; name a log of JSON lines")
        try:
            with self.path.open("rb") as file:
                number = 0
                while line := self._line(file, wait):
                    number += 1
                    if len(line) > MAX_LINE:
                        self._bad(number, f"is longer than {MAX_LINE:,} bytes; it is no line of a log")
                    if number > MAX_LINES:
                        self._bad(number, f"is beyond {MAX_LINES:,} lines; cut the log at a moment when nothing runs")
                    if any(part in line for part in containing) and line.strip():
                        yield number, self._parsed(number, line)
        except OSError as error:
            raise BadLog(f"log {self.path} cannot be read ({error.strerror}); name a log of JSON lines") from None

    def _line(self, file: BinaryIO, wait: Wait | None) -> bytes:
        """The next line; none at the end. What is only begun, of a log that is still written, is waited for."""
        line = file.readline(MAX_LINE + 1)
        while wait is not None and not line.endswith(b"\n") and len(line) <= MAX_LINE:
            if os.fstat(file.fileno()).st_size < file.tell():
                raise BadLog(f"log {self.path} has become shorter while it was read; watch one that is only added to")
            if not wait():
                return b""
            line += file.readline(MAX_LINE + 1 - len(line))
        return line

    def _parsed(self, number: int, line: bytes) -> JSON:
        depth, _ = nesting(line)
        if depth > MAX_DEPTH:
            self._bad(
                number, f"is nested {depth:,} deep, and a log never more than {MAX_DEPTH}; it is no line of a log"
            )
        try:
            record = parsed(line.decode("utf-8"))
        except UnicodeDecodeError:
            self._bad(number, "is not UTF-8 text; record it again")
        except ValueError as error:
            cut = "" if line.endswith(b"\n") else " (was it cut off? take the last line away)"
            self._bad(number, f"is not JSON: {error!s:.100}{cut}")
        return self._record(number, record, "the line")

    def _header_of(self, number: int, record: JSON) -> Header:
        schema = record.get("kvproof_log")
        if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
            self._bad(number, 'does not begin with {"kvproof_log": 1, ...}; docs/reference/logs.md says how')
        if schema > SCHEMA:
            self._bad(number, f"has schema {schema}, and this kvproof reads up to {SCHEMA}; upgrade kvproof")
        self._only(number, record, ("kvproof_log", "contract", "sizes", "engine", "runs", "tokens_per_block"))
        sizes = self._record(number, record.get("sizes"), "sizes")
        self._only(number, sizes, (*SIZES, *OPTIONAL_SIZES))
        for name, most in (*SIZES.items(), *OPTIONAL_SIZES.items()):
            value = sizes.get(name, 0 if name in OPTIONAL_SIZES else None)
            least = 0 if name in OPTIONAL_SIZES else 1
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                self._bad(number, f"has {name} {value!r:.40} in sizes, and not a number from {least} to {most:,}")
        fields = cast("dict[str, Any]", sizes)
        scope = Scope(
            **fields,
            prompts=("?",) * PLACES,
            resets=MAX_RESETS,
            meanings=scopes.MEANINGS,
            survivors=True,
            tiers=("all", "device", "host"),
            lookups=True,
            stops=True,
            duplicates=MAX_RESETS,
            losses=MAX_RESETS,
            forgeries=MAX_RESETS,
            double_frees=MAX_RESETS,
            failures=MAX_RESETS,
            partial_failures=MAX_RESETS,
            expiries=MAX_RESETS,
        )
        contract = self._contract(number, record)
        if contract.expires:
            scope = scope._replace(deaths=scope.workers)
        runs = record.get("runs")
        if runs not in (RECORDED, UNRECORDED):
            self._bad(number, f"has runs {runs!r:.40}, and not {RECORDED} or {UNRECORDED}")
        engine = self._text(number, record.get("engine"), "engine")
        tokens = record.get("tokens_per_block", 0)
        if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens <= MAX_KEYS:
            self._bad(number, f"has tokens_per_block {tokens!r:.40}, and not a number up to {MAX_KEYS:,}")
        return Header(contract, scope, engine, str(runs), tokens)

    def _contract(self, number: int, record: JSON) -> Contract:
        fields = dict(self._record(number, record.get("contract"), "contract"))
        known = tuple(name for name in Contract._fields if name != "environment")
        self._only(number, fields, known)
        for name, value in fields.items():
            if not isinstance(Contract._field_defaults.get(name), int):
                self._text(number, value, f"{name} of the contract")
            elif type(value) is not int:
                self._bad(number, f"has {name} {value!r:.40} in its contract; see kvproof conform --help")
        try:
            return validated_contract(Contract(**cast("dict[str, Any]", fields)))
        except (BadScope, TypeError) as error:
            self._bad(number, f"has a contract that makes no sense: {error}")

    def _entry(self, number: int, record: JSON) -> Entry:
        self._only(number, record, LINE_FIELDS)
        do = dict(self._record(number, record.get("do"), "do"))
        verb = self._text(number, do.pop("verb", None), "verb")
        refused, crashed, answered = record.get("refused"), record.get("crashed"), record.get("answered")
        if answered is not None and not isinstance(answered, bool):
            self._bad(number, f"has answered {answered!r:.40}, and not true or false")
        did = record.get("did", [])
        if not isinstance(did, list):
            self._bad(number, "has no list where did belongs")
        return Entry(
            number,
            verb,
            do,
            self._keys(number, record, "keys"),
            self._keys(number, record, "decoded"),
            None if refused is None else self._text(number, refused, "refused"),
            None if crashed is None else self._text(number, crashed, "crashed"),
            answered,
            tuple([self._record(number, action, "a member of did") for action in cast("list[object]", did)]),
            self._record(number, record.get("seen", {}), "seen"),
            self._failed(number, do, record["failed"]) if "failed" in record else {},
        )

    def _each_job(self, number: int, entry: Entry) -> Iterator[Entry]:
        """A worker may report several jobs in one line; what was seen was seen after the last."""
        jobs = entry.arguments.get("jobs")
        if jobs is None:
            yield entry
            return
        if not isinstance(jobs, list) or not 0 < len(cast("list[object]", jobs)) <= MAX_KEYS:
            self._bad(number, f"has no list of 1 to {MAX_KEYS:,} job ids where jobs belongs")
        if any(job not in jobs for job in entry.failed):
            self._bad(number, "has failed of a job that it does not report")
        arguments = {name: value for name, value in entry.arguments.items() if name != "jobs"}
        *before, last = cast("list[object]", jobs)
        for job in before:
            yield entry._replace(arguments={**arguments, "job": job}, seen={}, failed=_of_job(entry, job))
        yield entry._replace(arguments={**arguments, "job": last}, failed=_of_job(entry, last))

    def _failed(self, number: int, do: JSON, value: object) -> Mapping[int, tuple[int, ...]]:
        """Of a report a list of positions, of a mark a record of such lists by job."""
        job, worker = do.get("job"), do.get("worker")
        of_jobs = {str(job): value} if isinstance(value, list) else self._record(number, value, "failed")
        failed: dict[int, tuple[int, ...]] = {}
        for name, positions in of_jobs.items():
            known = name.isascii() and name.isdigit() and len(name) < 10 and isinstance(worker, int)
            if not known or not isinstance(positions, list) or not 0 < len(cast("list[object]", positions)) <= MAX_KEYS:
                self._bad(number, "has failed, which is of a report: the positions of pairs that could not be copied")
            for position in cast("list[object]", positions):
                if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < MAX_KEYS:
                    self._bad(number, f"has {position!r:.40} in failed, and not the position of a pair")
            failed[int(name)] = tuple(sorted(cast("list[int]", positions)))
        return failed

    def _keys(self, number: int, record: JSON, name: str) -> tuple[str, ...]:
        value = record.get(name, [])
        if not isinstance(value, list) or len(value) > MAX_KEYS:
            self._bad(number, f"has no list of at most {MAX_KEYS:,} keys where {name} belongs")
        return tuple([self._text(number, key, "a key") for key in cast("list[object]", value)])

    def _record(self, number: int, value: object, where: str) -> JSON:
        if not isinstance(value, dict):
            self._bad(number, f"has no record where {where} belongs")
        return cast(JSON, value)

    def _only(self, number: int, fields: Mapping[str, object], known: tuple[str, ...]) -> None:
        for name in fields:
            if name not in known:
                self._bad(number, f"has {name!r:.40}, which is none of {', '.join(known)}")

    def _text(self, number: int, value: object, where: str) -> str:
        if not isinstance(value, str) or not value or len(value) > MAX_TEXT or not value.isprintable():
            self._bad(
                number, f"has {value!r:.40} where {where} belongs: a printable text of up to {MAX_TEXT} characters"
            )
        return value

    def _bad(self, number: int, what: str) -> NoReturn:
        raise BadLog(f"log {self.path}, line {number}, {what}")


def _of_job(entry: Entry, job: object) -> Mapping[int, tuple[int, ...]]:
    return {number: positions for number, positions in entry.failed.items() if number == job}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # such as a name that is too long, or holds a zero byte
        return False
