"""A case is written once, as commands and what must be seen after them, and played on three subjects:

    machine   the reference machine, its own policy, ghost contents
    ledger    kvoffload on symbolic contents
    host      kvoffload on real threads and real bytes, gated: an operation runs when the case says so

Commands are in the words of kvproof's reports. What is expected is literal: numbers of references, names of keys,
answers; never a block id, so that a case says what happens and not where.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple, Protocol

import pytest

from kvmodel import Forbidden, Machine, State
from kvmodel.actions import Reset
from kvmodel.contents import TORN, UNWRITTEN
from kvmodel.contract import Contract
from kvmodel.request import PHASES
from kvmodel.scope import Scope
from kvmodel.setting import Setting
from kvmodel.streams import STREAMS
from kvmodel.transfer_job import DIRECTIONS, VIEWS
from kvproof.targets.command import VERBS, Command, describe, request_name
from kvproof.targets.explain import ALWAYS_REFUSED
from kvproof.targets.kvoffload import Host, KVOffload, Ledger
from kvproof.targets.outcome import Answer, Refused
from kvproof.targets.view import View, expected
from kvproof.targets.wording import action_of

JOBS = 12
"""Job ids that the words of a case may name (count)."""

BLOCKS_OF_A_JOB = 4
"""Positions in a job that they may name (count)."""


class Step(NamedTuple):
    """One command, and what is expected then; a fact that is None is not looked at.

    answer      of a reset: True or False
    refused     name of the error with which kvoffload refuses it; the machine must forbid it, and nothing may change
    device, host, second          references of all blocks, highest first: `2 1 0 0`
    on_device, on_host, on_second what can be hit: `a ab`
    requests    phase of each: `RUNNING WAITING`
    jobs        transfers that were not dropped, with the workers whose reports are awaited: `0 store LIVE w0`
    waits_for   jobs that keep requests from being looked up or run: `x 0 2`
    found       what lookups keep: `x a | ab`, on the device, then on the host; `-` for nothing
    kv          what the blocks of each table truly hold, on every worker: `x a ab`, `?` where never written, `-a` for
                what was computed before an `invalidate` reset, and `torn` where a copy failed
    may_run     streams whose oldest operation could run now: `w0 compute, w0 store`
    """

    command: str
    answer: bool | None = None
    refused: str | None = None
    device: str | None = None
    host: str | None = None
    on_device: str | None = None
    on_host: str | None = None
    second: str | None = None
    on_second: str | None = None
    requests: str | None = None
    jobs: str | None = None
    waits_for: str | None = None
    found: str | None = None
    kv: str | None = None
    may_run: str | None = None


Steps = tuple[Step, ...]

FACTS = tuple(field for field in Step._fields if field not in ("command", "answer", "refused"))


def facts(setting: Setting, view: View) -> dict[str, str]:
    """Everything that a step may expect, of one view."""
    assert view.requests is not None
    assert view.jobs is not None
    assert view.runnable is not None
    assert view.contents is not None
    names = setting.key_names

    def keys(pool: tuple[int, ...] | None) -> str:
        return " ".join(names[key - 1] for key in sorted(pool or ()) if key)

    def counts(pool: tuple[int, ...] | None) -> str:
        return " ".join(map(str, sorted(pool or (), reverse=True)))

    def cached(pool: tuple[int, ...] | None, blocks: tuple[int, ...]) -> str:
        return " ".join(names[(pool or ())[block] - 1] for block in blocks) or "-"

    def content(block: int) -> str:
        held = {worker[block] for worker in (view.contents or ((),))[0]}
        words = {UNWRITTEN: "?", TORN: "torn"}
        return "/".join(words.get(c) or ("-" if c < 0 else "") + names[abs(c) - 1] for c in sorted(held))

    named = [(request_name(number), request) for number, request in enumerate(view.requests)]
    return {
        "device": counts(view.device_refs),
        "host": counts(view.host_refs),
        "on_device": keys(view.device_keys),
        "on_host": keys(view.host_keys),
        "second": counts(view.second_refs),
        "on_second": keys(view.second_keys),
        "requests": " ".join(PHASES[request.phase] for request in view.requests if request.phase),
        "jobs": ", ".join(
            " ".join([str(job.id), DIRECTIONS[job.direction], VIEWS[job.view], *[f"w{w}" for w in job.awaiting]])
            for job in view.jobs
        ),
        "waits_for": ", ".join(" ".join([name, *map(str, r.jobs)]) for name, r in named if r.jobs),
        "found": ", ".join(
            f"{name} {cached(view.device_keys, r.pins.device)} | {cached(view.host_keys, r.pins.host)}"
            for name, r in named
            if r.pins is not None
        ),
        "kv": ", ".join(" ".join([name, *map(content, r.table)]) for name, r in named if r.table),
        "may_run": ", ".join(f"w{worker} {STREAMS[stream]}" for worker, stream in view.runnable),
    }  # fmt: skip


def given(*commands: str) -> Steps:
    """Commands on the way to what a case is about: they are answered, and nothing else is expected of them."""
    return tuple(Step(command) for command in commands)


class Subject(Protocol):
    """What a case is played on. `do` answers True or False for a reset, the error's name for a refusal, else None."""

    def do(self, command: Command) -> bool | str | None: ...

    def view(self) -> View: ...

    def close(self) -> None: ...


class OnMachine:
    """The reference machine; choices are its policy's."""

    def __init__(self, setting: Setting) -> None:
        self.machine = Machine(setting.contract, setting.scope)
        self.state = self.machine.initial()

    def do(self, command: Command) -> bool | str | None:
        action = action_of(self.machine, self.state, command)
        if action is None:
            return None
        try:
            self.machine.check(self.state, action)
        except Forbidden as forbidden:
            return forbidden.rule
        answer = self.machine.answer(self.state, action) if isinstance(action, Reset) else None
        self.state = self.machine.step(self.state, action)
        return type(action).__name__ if isinstance(action, ALWAYS_REFUSED) else answer

    def view(self) -> View:
        return expected(self.state)

    def close(self) -> None:
        pass


def state_after(contract: Contract, scope: Scope, *commands: str) -> tuple[Machine, State]:
    """A machine, and its state after these commands, none of which it may refuse."""
    played, words = OnMachine(Machine(contract, scope).setting), vocabulary(scope)
    for text in commands:
        answer = played.do(words[text])
        assert not isinstance(answer, str) or words[text].verb in ("forge_report", "free_twice"), f"{text}: {answer}"
    return played.machine, played.state


class OnKVOffload:
    """kvoffload behind its adapter. A crash, and a read that found other bytes than were promised, fail the case."""

    def __init__(self, target: KVOffload) -> None:
        self.target = target

    def do(self, command: Command) -> bool | str | None:
        outcome = self.target.perform(command)
        if isinstance(outcome, Refused):
            return outcome.reason.partition(":")[0]
        assert isinstance(outcome, Answer), outcome
        return outcome.value if isinstance(outcome.value, bool) else None

    def view(self) -> View:
        return self.target.view()

    def close(self) -> None:
        self.target.close()


SUBJECTS: dict[str, Callable[[Setting], Subject]] = {
    "machine": OnMachine,
    "ledger": lambda setting: OnKVOffload(Ledger(setting)),
    "host": lambda setting: OnKVOffload(Host(setting)),
}


class Case(NamedTuple):
    """One case by name. about: its source and what it is about, in one sentence."""

    name: str
    about: str
    contract: Contract
    scope: Scope
    steps: Steps

    @property
    def setting(self) -> Setting:
        return Machine(self.contract, self.scope).setting

    @property
    def commands(self) -> tuple[Command, ...]:
        words = vocabulary(self.scope)
        return tuple(words[step.command] for step in self.steps)


def vocabulary(scope: Scope) -> dict[str, Command]:
    """Every command of a scope by its words in reports."""
    numbers = {"request": len(scope.prompts), "worker": scope.workers, "position": BLOCKS_OF_A_JOB}
    numbers |= {"job": JOBS, "mark": JOBS}
    words: dict[str, Command] = {}
    for verb, parameters in VERBS.items():
        for args in product(*[p.values or range(numbers[p.name]) for p in parameters]):
            said = [arg for p, arg in zip(parameters, args, strict=True) if not p.default or arg != p.default]
            command = Command(verb, tuple(said))
            words[describe(command, scope)] = command
    return words


CASES: dict[str, Case] = {}
"""Every case, by its name: what `tests/traces/` is written from."""


@contextmanager
def playing(subject: str, setting: Setting) -> Iterator[Subject]:
    """A fresh subject, closed in the end."""
    opened = SUBJECTS[subject](setting)
    try:
        yield opened
    finally:
        opened.close()


def play(case: Case, subject: str) -> None:
    """Take every step and compare what was expected of it."""
    words = vocabulary(case.scope)
    with playing(subject, case.setting) as played:
        before = played.view()
        for number, step in enumerate(case.steps, start=1):
            where = f"{case.name} on {subject}, step {number}: {step.command}"
            answer = played.do(words[step.command])
            after = played.view()
            if step.refused is None:
                assert answer == step.answer, where
            else:
                assert isinstance(answer, str), f"{where}: was not refused"
                assert answer == step.refused or subject == "machine", where
                assert after == before, f"{where}: was refused and changed something"
            seen = facts(case.setting, after)
            wanted = {name: getattr(step, name) for name in FACTS if getattr(step, name) is not None}
            assert {name: seen[name] for name in wanted} == wanted, where
            before = after


def case(*contracts: Contract, scope: Scope) -> Callable[[Callable[[], Steps]], Callable[[str, str], None]]:
    """The decorated function gives the steps of a case; it becomes a test that plays them on every subject.

    With several contracts the same is expected under each of them.
    """

    def decorated(steps: Callable[[], Steps]) -> Callable[[str, str], None]:
        about = " ".join((steps.__doc__ or "").split())
        names: list[str] = []
        for contract in contracts:
            base = steps.__name__.removeprefix("test_").removesuffix("_under_fencing")
            name = f"{base}-{contract.discipline}"
            assert name not in CASES, f"there are two cases {name}"
            CASES[name] = Case(name, about, contract, scope, steps())
            names.append(name)

        @pytest.mark.parametrize("subject", SUBJECTS)
        @pytest.mark.parametrize("name", names)
        def test(name: str, subject: str) -> None:
            play(CASES[name], subject)

        test.__name__, test.__doc__ = steps.__name__, steps.__doc__
        return test

    return decorated
