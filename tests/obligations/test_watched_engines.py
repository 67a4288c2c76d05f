"""fuzz, search, replay and shrink on watched targets: verdicts, and traces that run again."""

import dataclasses
from multiprocessing.sharedctypes import RawValue
from typing import Any

import pytest

from kvmodel.contract import Contract
from kvproof.engines import fuzz, replay, robustness, search, shrink
from kvproof.failure import fingerprint
from kvproof.job import Job
from kvproof.obligations.books import Books, Pool, Unreadable
from kvproof.obligations.workers import Workers
from kvproof.report.failure_text import failure_text
from kvproof.scopes import SCOPES
from kvproof.targets.command import Command
from kvproof.targets.outcome import Answer, Outcome
from kvproof.trace.trace import Trace
from kvproof.verdict import Verdict, exit_status
from kvproof.worker import outcome

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


def test_what_fails_is_shortest_in_fuzz_and_in_search() -> None:
    for engine, name in ((fuzz, "fuzz"), (search, "search")):
        result = run(engine, job(Dies, name))
        assert result.verdict is Verdict.REFUTED
        assert result.failure.property == "work-remaining-keeps-the-engine-stepping"
        assert (result.failure.commands, result.failure.minimal) == (SHORTEST, "shortest")
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


class NeverOpened(Sound):
    """Another one, which shows before the first command."""

    def __init__(self, setting: object) -> None:
        raise Unreadable("Scheduler takes no block_size in this version")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Newer, "BlockPool has no free_block_queue in this version"),
        (NeverOpened, "Scheduler takes no block_size in this version"),
    ],
)
def test_an_engine_that_the_adapter_does_not_know_is_an_error_that_names_what_is_missing(
    target: type, words: str
) -> None:
    trace = Trace(FENCING, SCOPES["s1"], "s1", "", SHORTEST, Verdict.REFUTED, None, "fuzz")
    for name in ("fuzz", "search", "replay", "shrink"):
        result = outcome(job(target, name, trace=trace), lambda text: None, RawValue("b", 0))
        assert (result.verdict, result.detail) == (Verdict.ERROR, words)


class Fragile(Sound):
    """Dies of a schedule after a report that came twice; the abort after a lost one does nothing."""

    beyond = frozenset({"duplicate_report", "lose_report"})

    def __init__(self, setting: object) -> None:
        super().__init__(setting)
        self.doubled = False

    def faults(self) -> list[Command]:
        return [DOUBLED, Command("lose_report", (0, 7))] if self.held else []

    def perform(self, command: Command) -> Outcome:
        self.doubled |= command == DOUBLED
        if command.verb == "schedule" and self.doubled:
            raise KeyError("job 7")
        if command.verb in self.beyond:
            return Answer()
        return super().perform(command)


class Both(Fragile):
    """Dies of every third abort too, whatever was reported."""

    def __init__(self, setting: object) -> None:
        super().__init__(setting)
        self.aborts = 0

    def perform(self, command: Command) -> Outcome:
        self.aborts += command.verb == "abort"
        if self.aborts == 3:
            raise ValueError("enough")
        return super().perform(command)


DOUBLED = Command("duplicate_report", (0, 7))
DEADLY = (Command("schedule"), DOUBLED, Command("abort", (0,)), Command("schedule"))


def test_what_breaks_after_an_excluded_fault_is_about_robustness() -> None:
    found = run(robustness, job(Fragile, "robustness", fault="duplicate_report", commands=300))
    assert (found.verdict, exit_status([found])) == (Verdict.FRAGILE, 0)
    assert (found.failure.commands, found.failure.fault) == (DEADLY, "duplicate_report")
    assert "of them with a fault" in found.detail
    violation = fingerprint(found.failure.property, found.failure.target, found.failure.cause[:-2])
    assert found.failure.fingerprint != violation
    survived = run(robustness, job(Fragile, "robustness", fault="lose_report", commands=300))
    assert (survived.verdict, survived.failure) == (Verdict.PASSED, None)
    assert run(fuzz, job(Fragile, "fuzz")).verdict is Verdict.PASSED


class NeverFaulty(Fragile):
    """Declares faults, and offers none."""

    def faults(self) -> list[Command]:
        return []


def test_a_fault_that_no_walk_had_is_not_survived() -> None:
    found = run(robustness, job(NeverFaulty, "robustness", fault="lose_report", commands=300))
    assert (found.verdict, exit_status([found])) == (Verdict.UNDETERMINED, 3)
    assert found.detail.endswith("0 of them with a fault: nothing is known of lose_report, which the target declares "
                                 "and never offered")  # fmt: skip


def test_what_breaks_without_the_fault_too_is_left_to_fuzz() -> None:
    found = run(robustness, job(Both, "robustness", fault="lose_report", commands=600))
    assert (found.verdict, found.failure) == (Verdict.PASSED, None)
    assert run(fuzz, job(Both, "fuzz", watched=600)).verdict is Verdict.REFUTED


def test_a_trace_with_an_excluded_fault_is_judged_as_one() -> None:
    trace = Trace(FENCING, SCOPES["s1"], "s1", "", (Command("submit", (0,)), *DEADLY), Verdict.FRAGILE, None, "fuzz")
    replayed = run(replay, job(Fragile, "replay", trace=trace))
    assert (replayed.verdict, replayed.failure.fault) == (Verdict.FRAGILE, "duplicate_report")
    shorter = run(shrink, job(Fragile, "shrink", trace=trace))
    assert (shorter.verdict, shorter.failure.commands) == (Verdict.FRAGILE, DEADLY)
    assert failure_text(shorter.failure).splitlines()[0].startswith("FRAGILE work-remaining")
