"""A log of an engine that schedules in its own way: held to what every engine owes, as far as hooks can tell.

Steps and copies are put on the streams of one simulated worker (all do the same), and what nobody saw runs as late as
the log allows: a compute before the engine can have its output, and before a store of what it writes and a load over
what it touches; a copy when it is reported or flushed. Each compute must then read what its request computed, hit or
loaded; and what a reset that answered True has emptied is not loaded.
"""

from collections import deque
from typing import NamedTuple, NoReturn, cast

from kvproof.log.entry import JSON, BadLog
from kvproof.log.lines import MAX_TEXT
from kvproof.obligations.workers import AGES, Direction, Share, Workers

MOST_REQUESTS = 4_096
"""Requests that may be there at once (count)."""

MOST_BLOCKS = 65_536
"""Blocks of one request, or of one copy (count)."""

MOST_HOST_BLOCKS = 1_000_000
MOST_NAMES = 1_000_000
"""The most different keys, and blocks without one (count)."""

MOST_WAITING = 1_000_000
"""Blocks that are copied and not reported yet (count)."""

NUMBERS_BELOW = 2**53

FIELDS = {
    "step": ("do", "requests", "copies", "flush", "time"),
    "report": ("do", "jobs", "time"),
    "reset": ("do", "answered", "time"),
    "end": ("do", "time"),
}
"""By verb, what a line may have."""

SHARE_FIELDS = ("start", "count", "table", "more", "keys")
"""What a step may say of a request."""


class Broken(NamedTuple):
    """What the engine owes and did not do, and in which line."""

    line: int
    property: str
    sentence: str


class Known:
    """One request. table: its device blocks; names: what each of them is to hold; keyed: leading ones of these that
    have a key (count)."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.table: list[int] = []
        self.names: list[int] = []
        self.keyed = 0


class Logged:
    """Takes the lines of one log, one after another. Raises BadLog for one that makes no sense."""

    def __init__(self, path: str, device_blocks: int, tokens_per_block: int, depth: int) -> None:
        self.path = path
        self.tokens = tokens_per_block
        self.depth = depth
        self.workers = Workers(1, device_blocks, 0, 1)
        self._requests: dict[str, Known] = {}
        self._told: dict[int, str] = {}
        self._ending: deque[tuple[int, int]] = deque()
        self._names: dict[str, int] = {}
        self._next_name = 1
        self._next_number = 0
        self._epoch = 0
        self._stored_in: dict[int, int] = {}
        self._latest = -1
        self._waiting = 0
        self._line = 0

    def take(self, number: int, record: JSON) -> Broken | None:
        """One line. None: nothing is broken by it."""
        self._line = number
        do = self._record(record.get("do"), "do")
        verb = do.get("verb")
        if not isinstance(verb, str) or verb not in FIELDS:
            self._bad(f"has the verb {verb!r:.40}, which is none of {', '.join(FIELDS)}")
        self._only(record, FIELDS[verb])
        match verb:
            case "step":
                return self._step(record)
            case "report":
                return self._reported(self._numbers(record.get("jobs"), "jobs"))
            case "reset":
                self._reset(record.get("answered"))
            case _:
                self._end(do.get("request"))
        return None

    def _step(self, record: JSON) -> Broken | None:
        rank = self.workers.ranks[0]
        while rank.submitted - rank.ran >= self.depth:
            self.workers.run(0, "compute")
        flush = record.get("flush", [])
        self.workers.flush(0, self.workers.jobs() if flush == "all" else self._numbers(flush, "flush"))
        shares = [
            self._share(name, self._record(said, "a request"))
            for name, said in self._record(record.get("requests", {}), "requests").items()
        ]
        copies = [self._copy(copy) for copy in self._list(record.get("copies", []), "copies", MOST_BLOCKS)]
        stale: Broken | None = None
        for job, direction, pairs in copies:
            if direction == "load":
                stale = stale or self._stale(job, pairs)
                self._submit(job, direction, pairs)
        if shares:
            self.workers.launch(0, tuple(shares))
        for job, direction, pairs in copies:
            if direction == "store":
                self._stored_in |= dict.fromkeys([host for _, host in pairs], self._epoch)
                self._submit(job, direction, pairs)
        return stale or self._misread()

    def _submit(self, job: int, direction: Direction, pairs: list[tuple[int, int]]) -> None:
        """A copy waits for the computes that matter to it, and for no other: it may be over before them."""
        stores = direction == "store"
        copy = self.workers.submit(0, job, direction, pairs, waits_for_compute=True)
        copy.after = self.workers.last_compute(0, {pair[0 if stores else 1] for pair in pairs}, that_writes=stores)

    def _reported(self, jobs: tuple[int, ...]) -> Broken | None:
        """The copies of these jobs are over, and so are those before them on their stream."""
        for job in jobs:
            if job > self._latest:
                return self._broken("workers-agree", f"Job {job} is reported, and was never launched.")
        self.workers.flush(0, frozenset(jobs))
        self._waiting -= sum(len(copy.pairs) for copy in self.workers.collect(0))
        return self._misread()

    def _reset(self, answered: object) -> None:
        if not isinstance(answered, bool):
            self._bad("is a reset and lacks answered: true or false")
        self._epoch += answered

    def _end(self, name: object) -> None:
        """What it was called is said as long as a compute of it has not run."""
        known = self._requests.pop(name, None) if isinstance(name, str) else None
        rank = self.workers.ranks[0]
        if known is not None:
            self._ending.append((rank.submitted, known.number))
        while self._ending and self._ending[0][0] <= rank.ran:
            del self._told[self._ending.popleft()[1]]

    def _share(self, name: str, said: JSON) -> Share:
        self._only(said, SHARE_FIELDS)
        known = self._requests.get(name)
        if known is None:
            if len(self._requests) == MOST_REQUESTS:
                self._bad(f"has more than {MOST_REQUESTS:,} requests at once, which is too many")
            if not 0 < len(name) <= MAX_TEXT or not name.isprintable():
                self._bad(f"has request {name!r:.60}; its name is a printable text of up to {MAX_TEXT} characters")
            known = self._requests[name] = Known(self._next_number)
            self._told[known.number] = name
            self._next_number += 1
        if "table" in said:
            known.table = self._blocks(said["table"])
        known.table += self._blocks(said.get("more", []))
        start, count = self._numbers([said.get("start"), said.get("count")], "start and count")
        last = -(-(start + count) // self.tokens)
        if last > len(known.table) or len(known.table) > MOST_BLOCKS:
            self._bad(f"computes {last:,} blocks of request {name:.60}, which has {len(known.table):,}")
        self._learn(known, self._list(said.get("keys", []), "keys", MOST_BLOCKS))
        while len(known.names) < last:
            known.names.append(self._new_name())
        return Share(known.number, tuple(known.table[:last]), start // self.tokens, last, known.names[:last])

    def _learn(self, known: Known, keys: list[object]) -> None:
        """Its next blocks have these keys. What a block without one was called goes by its key from now on."""
        for key in keys:
            if not isinstance(key, str) or not 0 < len(key) <= 100 or not key.isprintable():
                self._bad(f"has {key!r:.40} where a key belongs: a printable text of up to 100 characters")
            if known.keyed == len(known.names):
                if key not in self._names:
                    self._names[key] = self._new_name()
                known.names.append(self._names[key])
            elif key not in self._names:
                self._names[key] = known.names[known.keyed]
            else:
                self._renamed(known.names[known.keyed], self._names[key])
                known.names[known.keyed] = self._names[key]
            known.keyed += 1

    def _renamed(self, before: int, after: int) -> None:
        """Two requests have computed the same, the one before it was known to be that."""
        rank = self.workers.ranks[0]
        for cells in (*rank.device, *rank.host):
            if cells[0] // AGES == before:
                cells[0] += (after - before) * AGES
        for number, (ages, shares) in enumerate(rank.compute):
            changed = [
                share._replace(prefixes=[after if n == before else n for n in share.prefixes]) for share in shares
            ]
            rank.compute[number] = (ages, tuple(changed))

    def _new_name(self) -> int:
        if self._next_name > MOST_NAMES:
            self._bad(f"has a key too many: at most {MOST_NAMES:,} are kept")
        self._next_name += 1
        return self._next_name - 1

    def _copy(self, copy: object) -> tuple[int, Direction, list[tuple[int, int]]]:
        said = self._list(copy, "a copy", 3)
        if len(said) != 3 or said[1] not in ("store", "load"):
            self._bad("has no [job, store or load, pairs] where a copy belongs")
        (job,) = self._numbers([said[0]], "a job")
        direction: Direction = said[1]
        pairs: list[tuple[int, int]] = []
        for pair in self._list(said[2], "pairs", MOST_BLOCKS):
            numbers = self._numbers(pair, "a pair")
            if len(numbers) != 2:
                self._bad("has no [source, destination] where a pair belongs")
            source, destination = numbers
            device, host = (source, destination) if direction == "store" else (destination, source)
            self._blocks([device])
            self._grown(host)
            pairs.append((source, destination))
        if not pairs:
            self._bad("has a copy of no blocks")
        self._latest = max(self._latest, job)
        self._waiting += len(pairs)
        if self._waiting > MOST_WAITING:
            self._bad(f"has a copy too many: at most {MOST_WAITING:,} blocks are copied and not reported")
        return job, direction, pairs

    def _grown(self, host: int) -> None:
        """The host tier's size is not in the log: it is as large as the blocks that are named."""
        if host >= MOST_HOST_BLOCKS:
            self._bad(f"has host block {host}, and there are at most {MOST_HOST_BLOCKS:,}")
        blocks = self.workers.ranks[0].host
        blocks.extend([[0] for _ in range(host + 1 - len(blocks))])

    def _stale(self, job: int, pairs: list[tuple[int, int]]) -> Broken | None:
        for host, _ in pairs:
            if self._stored_in.get(host, self._epoch) < self._epoch:
                return self._broken(
                    "true-reset-serves-nothing-old",
                    f"Job {job} loads host block {host}, which was stored before a reset that answered True.",
                )
        return None

    def _misread(self) -> Broken | None:
        if not self.workers.misreads:
            return None
        misread = self.workers.misreads[0]
        what = "which nobody has written" if misread.what == "unwritten" else "which holds something else"
        where = f"its block {misread.token} in device block {misread.block}"
        name = self._told.get(misread.request, "?")
        return self._broken("reads-what-was-written", f"The compute of request {name:.60} reads {where}, {what}.")

    def _broken(self, name: str, sentence: str) -> Broken:
        return Broken(self._line, name, sentence)

    # Reading.

    def _blocks(self, value: object) -> list[int]:
        blocks = list(self._numbers(value, "blocks"))
        most = len(self.workers.ranks[0].device)
        for block in blocks:
            if block >= most:
                self._bad(f"has device block {block}, and there are {most:,}")
        return blocks

    def _numbers(self, value: object, where: str) -> tuple[int, ...]:
        numbers = self._list(value, where, MOST_BLOCKS)
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < NUMBERS_BELOW:
                self._bad(f"has {number!r:.40} in {where}, and not a number from 0")
        return tuple(cast("list[int]", numbers))

    def _list(self, value: object, where: str, most: int) -> list[object]:
        if not isinstance(value, list) or len(cast("list[object]", value)) > most:
            self._bad(f"has no list of at most {most:,} where {where} belongs")
        return cast("list[object]", value)

    def _record(self, value: object, where: str) -> JSON:
        if not isinstance(value, dict):
            self._bad(f"has no record where {where} belongs")
        return cast(JSON, value)

    def _only(self, fields: JSON, known: tuple[str, ...]) -> None:
        for name in fields:
            if name not in known:
                self._bad(f"has {name!r:.40}, which is none of {', '.join(known)}")

    def _bad(self, what: str) -> NoReturn:
        raise BadLog(f"log {self.path}, line {self._line}, {what}")
