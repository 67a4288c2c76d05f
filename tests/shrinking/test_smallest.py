"""Shrinking keeps the violation and leaves nothing that could go: of commands, requests, workers, blocks, symbols."""

from collections.abc import Callable, Sequence

import pytest

from kvmodel import Machine
from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvproof.scopes import SCOPES, name_of, parse_scope
from kvproof.shrinking.attempt import Attempt, Plan, performed
from kvproof.shrinking.changes import symbols
from kvproof.shrinking.smallest import Shrinking, Smallest, same
from kvproof.targets.command import Command
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer, Outcome
from kvproof.targets.target import Target

C = Command
PINNING = Contract("pinning")
WIDE = Scope(5, 4, workers=2, prompts=("abc", "abd", "xy"), decode=1, resets=3, meanings=("invalidate", "evict"))

SERVED = (
    C("submit", (2,)),
    C("submit", (1,)),
    C("reset", ("evict", "preempt")),
    C("schedule"),
    C("submit", (0,)),
    C("run", (0, "compute")),
    C("run", (1, "compute")),
    C("handle_output"),
    C("run", (1, "store")),
    C("schedule"),
    C("run", (0, "store")),
    C("report", (1, 0)),
    C("run", (0, "compute")),
    C("report", (0, 0)),
)
"""Two requests are served by two workers until a store is reported by both."""


class Forgetful(Ledger):
    """Loses a reference whenever an output is handled."""

    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        if command.verb == "handle_output" and isinstance(outcome, Answer):
            self.engine.device_pool.counts[0] -= 1
        return outcome


class FailsAtTheSecondReporter(Ledger):
    """Asserts that no two workers report."""

    reporters: frozenset[int] = frozenset()

    def perform(self, command: Command) -> Outcome:
        outcome = super().perform(command)
        if command.verb == "report" and isinstance(outcome, Answer):
            self.reporters |= {int(command.args[0])}
        assert len(self.reporters) < 2
        return outcome


def found(target: type[Ledger], commands: Sequence[Command], scope: Scope = WIDE) -> Attempt:
    return performed(PINNING, at(target), scope, commands, lambda: False)


def at(target: type[Ledger]) -> Callable[[Machine], Callable[[], Target]]:
    return lambda machine: lambda: target(machine.setting)


def shrunk(target: type[Ledger], commands: Sequence[Command], cut: Callable[[], bool] = lambda: False) -> Smallest:
    return Shrinking(at(target), found(target, commands), cut).smallest()


def test_only_what_is_needed_is_left_of_commands_and_scope() -> None:
    attempt, minimal = shrunk(Forgetful, SERVED)
    assert attempt.plan.commands == (C("submit", (0,)), C("schedule"), C("run", (0, "compute")), C("handle_output"))
    assert attempt.plan.scope == Scope(1, 1, 1, ("a",), resets=0, aborts=False, preempts=False)
    assert name_of(attempt.plan.scope) == "s1,device=1,prompts=a,resets=0,aborts=no,preempts=no"
    assert minimal == "shortest"


def test_what_two_workers_are_needed_for_keeps_them_and_has_their_completions_in_order() -> None:
    attempt = shrunk(FailsAtTheSecondReporter, SERVED).attempt
    assert list(map(str, attempt.plan.commands)) == [
        "submit(0)",
        "schedule()",
        "run(0, compute)",
        "run(0, store)",
        "report(0, 0)",
        "run(1, compute)",
        "run(1, store)",
        "report(1, 0)",
    ]
    assert attempt.plan.scope.workers == 2


def test_modes_that_are_not_needed_go_unless_the_engine_has_no_others() -> None:
    deep = Contract("pinning", depth=2, store_mode="lazy")
    whole = performed(deep, at(Forgetful), WIDE, SERVED, lambda: False)
    assert Shrinking(at(Forgetful), whole, lambda: False).smallest().attempt.plan.contract == PINNING
    kept = Shrinking(at(Forgetful), whole, lambda: False, has_other_modes=False).smallest()
    assert kept.attempt.plan.contract == deep
    assert len(kept.attempt.plan.commands) == 4


def test_what_is_shrunk_stays_as_it_is() -> None:
    once = shrunk(Forgetful, SERVED).attempt
    again = Shrinking(at(Forgetful), once, lambda: False).smallest()
    assert again.attempt.plan == once.plan


def test_a_cut_keeps_the_smallest_so_far() -> None:
    asked = 0

    def cut() -> bool:
        nonlocal asked
        asked += 1
        return asked > 60

    attempt, minimal = shrunk(Forgetful, SERVED, cut)
    whole = found(Forgetful, SERVED)
    assert attempt.run.divergence is not None
    assert whole.run.divergence is not None
    assert same(attempt.run.divergence) == same(whole.run.divergence)
    assert 4 <= len(attempt.plan.commands) < len(whole.plan.commands) == 8
    assert minimal == "shrunk"


def test_another_violation_on_the_way_is_not_taken_for_it() -> None:
    class Two(Forgetful):
        """Without a reset before, the output is not handled at all."""

        def perform(self, command: Command) -> Outcome:
            if command.verb == "reset":
                self.was_reset = True
            assert command.verb != "handle_output" or hasattr(self, "was_reset")
            return super().perform(command)

    attempt = shrunk(Two, SERVED).attempt
    assert attempt.run.divergence is not None
    assert attempt.run.divergence.property == "owners-account-for-references"
    assert sorted(c.verb for c in attempt.plan.commands) == ["handle_output", "reset", "run", "schedule", "submit"]


def test_progress_is_told() -> None:
    told: list[str] = []
    Shrinking(at(Forgetful), found(Forgetful, SERVED), lambda: False, told.append).smallest()
    assert told[0] == "8 commands left, 1 runs"
    assert told[-1].startswith("looking for fewer than 4: ")


@pytest.mark.parametrize("scope", [WIDE, *SCOPES.values()])
def test_the_name_of_a_scope_is_read_as_that_scope(scope: Scope) -> None:
    assert parse_scope(name_of(scope))[1] == scope


def test_a_named_scope_has_its_name() -> None:
    assert [name_of(scope) for scope in SCOPES.values()] == list(SCOPES)


def test_of_what_requests_decode_nothing_is_left_that_could_go() -> None:
    decoding = WIDE._replace(decode=0, decoded=("xy", "", "z"))
    smallest = Shrinking(at(Forgetful), found(Forgetful, SERVED, decoding), lambda: False).smallest()
    assert smallest.attempt.plan.scope == Scope(1, 1, 1, ("a",), resets=0, aborts=False, preempts=False)
    tried = [plan.scope.decoded for plan in symbols(Plan(PINNING, decoding, (), ()))]
    assert [decoded for decoded in tried if decoded != decoding.decoded] == [
        (), ("x", "", "z"), ("y", "", "z"), ("xy", "", ""),
    ]  # fmt: skip
