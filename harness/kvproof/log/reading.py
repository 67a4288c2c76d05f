"""What a line of a log says, in the machine's terms."""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, cast

from kvmodel import Action, State
from kvmodel import actions as act
from kvmodel.request import DONE, PHASES, Request
from kvmodel.transfer_job import DIRECTIONS, LIVE, NONE, STORE, VIEWS, Pair
from kvproof.log.entry import JSON, BadLog, Entry
from kvproof.log.places import Places
from kvproof.targets.command import VERBS, BadCommand, Command, from_names
from kvproof.targets.outcome import Answer, Crashed, Outcome, Refused
from kvproof.targets.view import TIERS, JobView, View, expected

NUMBERS = tuple(f"{tier}_{what}" for tier in TIERS for what in ("refs", "free"))
KEYS = tuple(f"{tier}_keys" for tier in TIERS)
SEEN = (*NUMBERS, *KEYS, "requests", "jobs")
"""What `seen` may have."""

OF_REQUEST: dict[str, Callable[[int], Action]] = {
    "Wake": act.Wake,
    "Finish": act.Finish,
    "ReleaseLookup": act.ReleaseLookup,
    "PreemptUnderPressure": act.PreemptUnderPressure,
}
DECISIONS = ("Lookup", "Promote", "Admit", "Grow", "Launch", *OF_REQUEST)
"""What `did` may have."""


class Said(NamedTuple):
    """A line in the machine's terms, but for what was seen: that is read against the state that it should show."""

    command: Command
    outcome: Outcome


class Reader:
    """Reads entries. Raises BadLog for what makes no sense, whatever the engine did."""

    def __init__(self, path: str, places: Places) -> None:
        self.path = path
        self.places = places

    def said(self, entry: Entry) -> Said:
        """The command and its outcome. The request of a submit must have its place already."""
        if entry.verb not in VERBS:
            self._bad(entry, f"has the unknown verb {entry.verb!r:.60}; docs/reference/logs.md lists them")
        arguments = dict(entry.arguments)
        if "request" in arguments:
            arguments["request"] = self._place(entry, arguments["request"])
        try:
            command = from_names(entry.verb, arguments, self.places.machine.setting.scope)
        except BadCommand as error:
            self._bad(entry, f"has a wrong command: {error}")
        if entry.crashed is not None:
            name, _, message = entry.crashed.partition(": ")
            return Said(command, Crashed(name, message))
        if entry.refused is not None:
            return Said(command, Refused(entry.refused))
        if entry.verb == "reset" and entry.answered is None:
            self._bad(entry, "is a reset and lacks answered: true or false")
        return Said(command, Answer(entry.answered, tuple([self._action(entry, record) for record in entry.did])))

    def seen(self, entry: Entry, state: State) -> View:
        """The fields that the line has. What it leaves out of a request or a job is as it should be."""
        for name in entry.seen:
            if name not in SEEN:
                self._bad(entry, f"has {name!r:.40} in seen, which is none of {', '.join(SEEN)}")
        if not entry.seen:
            return View()
        wanted = expected(state)
        fields: dict[str, Any] = {}
        for name in NUMBERS:
            if name in entry.seen:
                value = entry.seen[name]
                if name.endswith("_refs"):
                    value = self._of_each(entry, value, name, len(getattr(wanted, name)), 0)
                fields[name] = self._numbers(entry, value, name)
        for name in KEYS:
            if name in entry.seen:
                keys = self._of_each(entry, entry.seen[name], name, len(getattr(wanted, name)), None)
                fields[name] = tuple([self._key(entry, key) for key in keys])
        if "requests" in entry.seen:
            fields["requests"] = self._requests(entry, wanted)
        if "jobs" in entry.seen:
            fields["jobs"] = self._jobs(entry, wanted)
        return View()._replace(**fields)

    def _of_each(self, entry: Entry, value: object, where: str, blocks: int, otherwise: object) -> list[object]:
        """Of each block in order: from a list of all of them, or from a record of those that have anything."""
        if not isinstance(value, dict):
            return self._list(entry, value, where)
        values = [otherwise] * blocks
        for block, said in cast(JSON, value).items():
            if not (block.isascii() and block.isdigit() and len(block) < 10) or int(block) >= blocks:
                self._bad(entry, f"has {block!r:.40} in {where}, and blocks are numbers below {blocks:,}")
            values[int(block)] = said
        return values

    def _requests(self, entry: Entry, wanted: View) -> tuple[Request, ...]:
        requests = list(wanted.requests or ())
        for name, said in self._record(entry, entry.seen["requests"], "requests").items():
            fields = self._record(entry, said, f"request {name!r:.40}")
            if name in self.places.ended and fields.get("phase") == PHASES[DONE]:
                continue  # its place is another's: there is nothing left of it to compare with
            place = self._place(entry, name)
            changed: dict[str, Any] = {}
            for field, value in fields.items():
                if field == "phase" and value in PHASES:
                    changed[field] = PHASES.index(str(value))
                elif field in ("table", "jobs"):
                    changed[field] = self._numbers(entry, value, field)
                elif field == "computed":
                    (changed[field],) = self._numbers(entry, [value], field)
                else:
                    self._bad(entry, f"has {field!r:.40} {value!r:.40} of a request: phase, table, jobs or computed")
            requests[place] = requests[place]._replace(**changed)
        return tuple(requests)

    def _jobs(self, entry: Entry, wanted: View) -> tuple[JobView, ...]:
        """All the jobs that are known: one that the line leaves out is not there."""
        shown = {job.id: job for job in wanted.jobs or ()}
        jobs: list[JobView] = []
        said_of = self._record(entry, entry.seen["jobs"], "jobs")
        for name in said_of:
            if not (name.isascii() and name.isdigit() and len(name) < 10):
                self._bad(entry, f"has job {name!r:.40}, and job ids are numbers from 0")
        for name in sorted(said_of, key=int):
            number, said = int(name), said_of[name]
            fields = self._record(entry, said, f"job {number}")
            changed: dict[str, Any] = {}
            for field, value in fields.items():
                if field == "state" and value in VIEWS:
                    changed["view"] = VIEWS.index(str(value))
                elif field == "direction" and value in DIRECTIONS[1:]:
                    changed[field] = DIRECTIONS.index(str(value))
                elif field == "awaiting":
                    changed[field] = self._numbers(entry, value, field)
                else:
                    self._bad(entry, f"has {field!r:.40} {value!r:.40} of a job: state, direction or awaiting")
            jobs.append(shown.get(number, JobView(number, STORE, NONE, (), LIVE, ()))._replace(**changed))
        return tuple(jobs)

    def _action(self, entry: Entry, record: JSON) -> Action:
        kind = record.get("action")
        if kind not in DECISIONS:
            self._bad(entry, f"has the action {kind!r:.40} in did, which is none of {', '.join(DECISIONS)}")
        if kind == "Launch":
            return self._launch(entry, record)
        place = self._place(entry, record.get("request"))
        if kind in OF_REQUEST:
            return OF_REQUEST[str(kind)](place)
        if kind == "Promote":
            return act.Promote(place, self._pairs(entry, record.get("pairs")))
        if kind == "Grow":
            return act.Grow(place, self._numbers(entry, record.get("blocks"), "blocks"))
        device, host = (self._numbers(entry, record.get(tier, []), tier) for tier in ("device", "host"))
        if kind == "Lookup":
            return act.Lookup(place, (device, host))
        return act.Admit(place, act.Admission(device, host, self._numbers(entry, record.get("fresh", []), "fresh")))

    def _launch(self, entry: Entry, record: JSON) -> act.Launch:
        computes: list[tuple[int, int, int]] = []
        for compute in self._list(entry, record.get("computes", []), "computes"):
            name, *span = self._list(entry, compute, "a compute", 3)
            start, end = self._numbers(entry, span, "a compute")
            computes.append((self._place(entry, name), start, end))
        stores: list[tuple[int, tuple[Pair, ...]]] = []
        for store in self._list(entry, record.get("stores", []), "stores"):
            name, pairs = self._list(entry, store, "a store", 2)
            stores.append((NONE if name is None else self._place(entry, name), self._pairs(entry, pairs)))
        flush = self._numbers(entry, record.get("flush", []), "flush")
        cascade = self._pairs(entry, record.get("cascade", []))
        return act.Launch(act.Launching(tuple(computes), tuple(stores), (), flush, cascade))

    def _pairs(self, entry: Entry, value: object) -> tuple[Pair, ...]:
        pairs: list[Pair] = []
        for pair in self._list(entry, value, "pairs"):
            *blocks, key = self._list(entry, pair, "a pair", 3)
            source, destination = self._numbers(entry, blocks, "a pair")
            pairs.append(Pair(source, destination, self._key(entry, key)))
        return tuple(pairs)

    def _place(self, entry: Entry, name: object) -> int:
        if not isinstance(name, str) or name not in self.places.of:
            self._bad(entry, f"names request {name!r:.60}, which was never submitted, or ended long ago")
        return self.places.of[name]

    def _key(self, entry: Entry, key: object) -> int:
        if key is None:
            return 0
        if not isinstance(key, str) or key not in self.places.keys:
            self._bad(entry, f"names key {key!r:.60}, which no request of the log has")
        return self.places.keys[key]

    def _numbers(self, entry: Entry, value: object, where: str) -> tuple[int, ...]:
        numbers = self._list(entry, value, where)
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**31:
                self._bad(entry, f"has {number!r:.40} in {where}, and not a number from 0")
        return tuple(cast("list[int]", numbers))

    def _list(self, entry: Entry, value: object, where: str, length: int | None = None) -> list[object]:
        if not isinstance(value, list) or (length is not None and len(value) != length):
            self._bad(entry, f"has no list{'' if length is None else f' of {length}'} where {where} belongs")
        return cast("list[object]", value)

    def _record(self, entry: Entry, value: object, where: str) -> JSON:
        if not isinstance(value, dict):
            self._bad(entry, f"has no record where {where} belongs")
        return cast(JSON, value)

    def _bad(self, entry: Entry, what: str) -> NoReturn:
        raise BadLog(f"log {self.path}, line {entry.number}, {what}")
