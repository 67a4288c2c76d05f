"""Follow a log through the machine, line by line, as far as the contract explains it.

What an engine cannot log is when its copies run. Where a log has none of that, operations are run as late as what is
logged allows. That explains whatever any other order would: operations commute, running one takes no action away, and
under the contract no order of them reads or writes what it must not (`kvproof prove`).
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from kvmodel import Action, Forbidden, Machine, State
from kvmodel import actions as act
from kvmodel.request import DONE
from kvmodel.rules.run import copied
from kvmodel.state import initial_state
from kvmodel.streams import COMPUTE, STREAMS, oldest_copy, runnable
from kvproof.log.entry import RECORDED, BadLog, Entry, Header
from kvproof.log.lines import Failed
from kvproof.log.places import Places
from kvproof.log.reading import Reader, Said
from kvproof.log.transcript import Transcript
from kvproof.targets import leeway
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import Explained, compared, explain
from kvproof.targets.picture import MOST_CELLS, cells_of
from kvproof.targets.view import View, expected
from kvproof.targets.wording import action_of, command_of

OF_RUNS = ("report_all", "fail_copy", "fail_block")
"""Verbs that say nothing unless a log has every run."""

MAX_DISTINCT_KEYS = 1_000_000
"""The most keys that a log's requests have, each counted once."""

MAX_NAMES = 100_000_000
"""The most text of all these keys and of the names of all requests, in characters: they are kept to the end."""


MOST_RECENT = 1_000
"""So many of the last commands are remembered with their states; of large pools fewer."""


AROUND = 4
"""Pictures of a story beside those after these commands: before the first, and of the one that is not explained."""


class Taken(NamedTuple):
    """A line that was explained, or an operation that must have run before it.

    machine   as it was then: its setting changes with the requests
    entry     None: it is no line, but a run that was inferred
    answered  what a reset answered
    """

    machine: Machine
    before: State
    command: Command
    actions: tuple[Action, ...]
    after: State
    entry: Entry | None = None
    answered: bool | None = None


class Stuck(NamedTuple):
    """The first line that the contract does not explain.

    allowed  commands that would have been legal there; nearest: the one that is most like the logged one, or None
    otherwise  the same command would have been legal with the other answer
    """

    entry: Entry
    command: Command
    divergence: Divergence
    allowed: tuple[Command, ...]
    nearest: Command | None
    otherwise: bool = False


class Follower:
    """Takes entries one after another. `state` is the machine's after all that were explained.

    failures  copies of which a later line says that they failed: that happens as they are run
    inferred  operations that were run although the log does not say so (count)
    transcript  everything so far as the commands of a trace, the line that is not explained included
    recent    the last commands that were explained
    """

    def __init__(self, path: str, header: Header, failures: Failed) -> None:
        self.path = path
        self.failures = failures
        self.places = Places(header.contract, header.scope)
        self._kept = 0
        self.reader = Reader(path, self.places)
        self.state = initial_state(header.scope)
        self.recorded_runs = header.runs == RECORDED
        self.inferred = 0
        self.transcript = Transcript(header.scope)
        kept = MOST_CELLS // cells_of(header.scope) - AROUND
        self.recent: deque[Taken] = deque(maxlen=max(min(kept, MOST_RECENT), 1))

    @property
    def machine(self) -> Machine:
        return self.places.machine

    def take(self, entry: Entry) -> Stuck | None:
        """Explain one line, or say where it cannot be. Raises BadLog for a line that makes no sense."""
        if entry.verb == "submit" and entry.refused is None:
            self._make_place(entry)
        said = self.reader.said(entry)
        if said.command.verb in OF_RUNS and not self.recorded_runs:
            self._bad(
                entry,
                f"has {said.command.verb}, which says nothing in a log without runs; log a report for each job, or "
                "every run",
            )
        if entry.failed and (self.recorded_runs or said.command.verb not in ("report", "report_mark")):
            self._bad(entry, "has failed, which belongs to a report in a log without runs; else log fail_copy")
        state = self.state
        explained = self._explained(entry, said, state)
        best = state, explained
        later = self._later(said.command) if self._may_infer(said.command) else iter(())
        commands: list[Command] = []
        ran: deque[Taken] = deque(maxlen=self.recent.maxlen)  # a line may need more runs than there is room for states
        until_best: tuple[list[Command], list[Taken]] = [], []
        while isinstance(explained, Divergence):
            following = next(later, None)
            if following is None:
                self._goes_on(*until_best)
                self.transcript.goes_on([said.command])
                return self._stuck(entry, said.command, *best)
            commands.append(following.command)
            ran.append(following)
            state = following.after
            explained = self._explained(entry, said, state)
            if _is_about_what_is_seen(explained) and not _is_about_what_is_seen(best[1]):
                best, until_best = (state, explained), (list(commands), list(ran))
        for job, positions in entry.failed.items():
            self._failed(entry, state, job, positions)
        taken = Taken(
            self.machine, state, said.command, explained.actions, explained.state, entry, entry.answered
        )  # fmt: skip
        self._goes_on([*commands, said.command], [*ran, taken])
        self.inferred += len(commands)
        return None

    def _goes_on(self, commands: list[Command], taken: list[Taken]) -> None:
        """taken: the last of these commands, as many as are remembered."""
        for one in taken:
            self.state = one.after
        self.recent.extend(taken)
        self.transcript.goes_on(commands)

    def _failed(self, entry: Entry, state: State, job: int, positions: tuple[int, ...]) -> None:
        """What a report says of failures must have been known when the copy ran, and be of pairs that it has."""
        worker = entry.arguments["worker"]
        known = next((other for other in state.jobs if other.id == job), None)
        if known is not None and positions[-1] >= len(known.pairs):
            self._bad(entry, f"says that pair {positions[-1]} of job {job} failed, which has {len(known.pairs)}")
        if known is not None and tuple([at for rank, at in known.failed if rank == worker]) != positions:
            self._bad(
                entry,
                f"says late that job {job} failed: other operations have waited for it already; kvproof validate, once "
                "the log is whole, knows it from the beginning",
            )

    def _may_infer(self, command: Command) -> bool:
        return not self.recorded_runs and command.verb != "run"

    def _make_place(self, entry: Entry) -> None:
        name = entry.arguments.get("request")
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 500:
            self._bad(entry, f"submits request {name!r:.60}; its name is a text")
        if not entry.keys:
            self._bad(entry, f"submits request {name:.60} without keys")
        if name in self.places.of and self.state.requests[self.places.of[name]].phase != DONE:
            self._bad(entry, f"submits request {name:.60}, which is there already")
        self._kept += len(name) + sum(map(len, self.places.learned((*entry.keys, *entry.decoded))))
        if len(self.places.keys) > MAX_DISTINCT_KEYS or self._kept > MAX_NAMES:
            self._bad(
                entry,
                f"has a key too many: at most {MAX_DISTINCT_KEYS:,} are kept, and {MAX_NAMES:,} characters of keys and "
                "names of requests; cut the log at a moment when nothing runs",
            )
        state = self.places.taken(name, entry.keys, entry.decoded, self.state)
        if state is None:
            self._bad(entry, f"has more than {len(self.state.requests)} requests at once, which is too many")
        self.state = state
        self.transcript.comes(self.places.of[name], entry.keys, entry.decoded)

    def _explained(self, entry: Entry, said: Said, state: State) -> Explained | Divergence:
        explained = explain(self.machine, state, said.command, said.outcome, View(), exact=False)
        if not isinstance(explained, Explained):
            return explained
        if not entry.seen:
            return explained
        view = self.reader.seen(entry, explained.state)
        wanted = expected(explained.state)
        pairs = zip(leeway.settled(view, wanted, explained.state), wanted, strict=True)
        if all(seen is None or seen == right for seen, right in pairs):
            return explained
        last = explained.actions[-1] if explained.actions else None
        difference = compared(self.machine, state, said.command, last, explained.state, view, exact=False)
        return explained if difference is None else difference

    def _later(self, command: Command) -> Iterator[Taken]:
        """More and more operations that have run, those first that the command is about."""
        state = self.state
        while places := runnable(state):
            worker, stream = min(places, key=lambda place: self._distance(command, *place))
            ran = self._ran(state, worker, stream)
            yield ran
            state = ran.after

    def _ran(self, state: State, worker: int, stream: int) -> Taken:
        """The oldest operation of a stream has run, and failed if a later line says so."""
        job = oldest_copy(state, worker, stream) if self.failures and stream != COMPUTE else None
        where = (worker, STREAMS[stream])
        if job is None or (worker, job.id) not in self.failures:
            run = act.Run(worker, stream)
            return Taken(self.machine, state, Command("run", where), (run,), self.machine.step(state, run))
        failed = self.failures[worker, job.id]
        if len(failed) == len(job.pairs):
            command = Command("fail_copy", where)
        else:
            command = Command("fail_block", (*where, failed[0]))
            if len(failed) > 1:
                self.transcript.fails_in_part()
        return Taken(self.machine, state, command, (), copied(state, worker, job, failed))

    def _distance(self, command: Command, worker: int, stream: int) -> tuple[bool, bool, bool]:
        """How little an operation has to do with what is reported, or with an output."""
        if command.verb not in ("report", "lose_report", "duplicate_report"):
            return False, stream != COMPUTE, False
        about = next((job for job in self.state.jobs if job.id == command.args[1]), None)
        wanted = None if about is None else about.direction  # a copy's stream has the number of its direction
        return worker != command.args[0], stream != wanted, stream != COMPUTE

    def _bad(self, entry: Entry, what: str) -> NoReturn:
        raise BadLog(f"log {self.path}, line {entry.number}, {what}")

    def _stuck(self, entry: Entry, command: Command, state: State, divergence: Explained | Divergence) -> Stuck:
        assert isinstance(divergence, Divergence)
        enabled: list[Action] = self.machine.actions(state)
        allowed = tuple(dict.fromkeys([command_of(action) for action in enabled if not isinstance(action, _FAULTS)]))
        alike = [other for other in allowed if other.verb == command.verb and other != command]
        nearest = max(alike, key=lambda other: _agreement(other, command), default=None)
        return Stuck(entry, command, divergence, allowed, nearest, self._may_answer_otherwise(entry, state, command))

    def _may_answer_otherwise(self, entry: Entry, state: State, command: Command) -> bool:
        action = action_of(self.machine, state, command)
        if not isinstance(action, act.Reset) or entry.answered is None:
            return False
        try:
            self.machine.check(state, action._replace(answer=not entry.answered))
        except Forbidden:
            return False
        return True


_FAULTS = (
    act.DuplicateReport
    | act.LoseReport
    | act.RepeatMark
    | act.LoseMark
    | act.ForgeReport
    | act.FreeTwice
    | act.FailCopy
)


def _is_about_what_is_seen(explained: Explained | Divergence) -> bool:
    """The line could be taken, and something else was seen after it: closer than one that could not."""
    return isinstance(explained, Divergence) and explained.cause[0] == "view"


def _agreement(one: Command, other: Command) -> int:
    return sum(mine == theirs for mine, theirs in zip(one.args, other.args, strict=False))
