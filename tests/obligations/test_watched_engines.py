"""fuzz, search, replay and shrink on watched targets: verdicts, and traces that run again."""

import dataclasses
from typing import Any

from kvmodel.contract import Contract
from kvproof.engines import fuzz, replay, search, shrink
from kvproof.job import Job
from kvproof.obligations.watched import Books, Pool, Unreadable
from kvproof.obligations.workers import Workers
from kvproof.scopes import SCOPES
from kvproof.targets.command import Command
from kvproof.targets.outcome import Answer, Outcome
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict

FENCING = Contract("fencing")


class Sound:
    """One block: a schedule takes it, and an abort gives it back."""

    exact = False
    watched = True
    copies_own_blocks = False
    disciplines = ("fencing",)

    def __init__(self, setting: object) -> None:
        self.workers = Workers(1, device_blocks=1, host_blocks=1, tokens_per_block=1)
        self.held = 0

    def enabled(self) -> list[Command]:
        return [Command("abort", (0,))] if self.held else [Command("schedule"), Command("submit", (0,))]

    def perform(self, command: Command) -> Outcome:
        if command.verb != "submit":
            self.held = int(command.verb == "schedule")
        return Answer("done")

    def books(self) -> Books:
        return Books(Pool((self.held,), () if self.held else (0,), frozenset((0,))), None, (), (), False)

    def digest(self) -> bytes:
        return bytes((self.held,))

    def close(self) -> None: ...


class Dies(Sound):
    """The third abort of its life fails."""

    def __init__(self, setting: object) -> None:
        super().__init__(setting)
        self.aborts = 0

    def perform(self, command: Command) -> Outcome:
        self.aborts += command.verb == "abort"
        if self.aborts == 3:
            raise KeyError("job 7")
        return super().perform(command)

    def digest(self) -> bytes:
        return bytes((self.held, self.aborts))


class Newer(Sound):
    """An engine that the adapter does not know."""

    def books(self) -> Books:
        raise Unreadable("BlockPool has no free_block_queue in this version")


def job(target: type, engine: str, **options: Any) -> Job:
    name = f"{__name__}:{target.__name__}"
    return Job(engine, name, "fencing", "s1", SCOPES["s1"], FENCING, options={"watched": 300, **options})


def run(engine: Any, of: Job) -> Any:
    return engine.run(of, lambda text: None, lambda: False)


SHORTEST = (Command("schedule"), Command("abort", (0,))) * 3


def test_a_sound_engine_passes() -> None:
    fuzzed, searched = run(fuzz, job(Sound, "fuzz")), run(search, job(Sound, "search", length=5))
    assert (fuzzed.verdict, fuzzed.failure) == (Verdict.PASSED, None)
    assert fuzzed.counts["commands"] >= 300
    assert (searched.verdict, searched.states) == (Verdict.PASSED, 2)
    assert searched.detail == "every sequence of up to 5 commands (default): 6 sequences, 2 states"


def test_what_fails_is_shrunk_by_fuzz_and_shortest_in_search() -> None:
    for engine, name, minimal in ((fuzz, "fuzz", "shrunk"), (search, "search", "shortest")):
        result = run(engine, job(Dies, name))
        assert result.verdict is Verdict.REFUTED
        assert result.failure.property == "work-remaining-keeps-the-engine-stepping"
        assert (result.failure.commands, result.failure.minimal) == (SHORTEST, minimal)
        assert result.failure.cause == ("crash", "abort", "KeyError", "perform")


def test_what_is_known_is_gone_on_past() -> None:
    known = (run(fuzz, job(Dies, "fuzz")).failure.fingerprint,)
    again = run(fuzz, job(Dies, "fuzz", known=known))
    assert (again.verdict, again.failure.fingerprint) == (Verdict.REFUTED, known[0])
    assert again.counts["commands"] >= 300
    searched = run(search, job(Dies, "search", length=7, known=known))
    assert searched.detail.startswith("every sequence of up to 7 commands")
    assert searched.failure.commands == SHORTEST


def test_a_trace_is_replayed_and_shrunk_and_fixed_on_another_engine() -> None:
    longer = (Command("submit", (0,)), *SHORTEST)
    trace = Trace(FENCING, SCOPES["s1"], "s1", "", longer, Verdict.REFUTED, None, "fuzz")
    replayed = run(replay, job(Dies, "replay", trace=trace))
    assert (replayed.verdict, replayed.failure.commands) == (Verdict.REFUTED, longer)
    assert run(replay, job(Sound, "replay", trace=trace)).verdict is Verdict.PASSED
    assert run(shrink, job(Dies, "shrink", trace=trace)).failure.commands == SHORTEST
    assert run(shrink, job(Sound, "shrink", trace=dataclasses.replace(trace))).verdict is Verdict.FIXED


def test_an_engine_that_the_adapter_does_not_know_is_an_error_that_names_what_is_missing() -> None:
    for engine, name in ((fuzz, "fuzz"), (search, "search")):
        result = run(engine, job(Newer, name))
        assert result.verdict is Verdict.ERROR
        assert result.detail.startswith("BlockPool has no free_block_queue in this version")
