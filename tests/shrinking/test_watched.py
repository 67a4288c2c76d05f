"""Shrinking with a target that is held to no machine: the scope gets smaller too, and another way is found."""

from typing import cast

from kvmodel.contract import Contract
from kvmodel.scope import Scope
from kvmodel.setting import Setting
from kvproof.engines.shrink import Shrunk, shrunk_with_scope
from kvproof.obligations.books import Books
from kvproof.obligations.workers import Workers
from kvproof.search.modes import Variant
from kvproof.shrinking import watched
from kvproof.shrinking.attempt import OpenAt
from kvproof.targets.command import Command
from kvproof.targets.outcome import Answer, Outcome
from kvproof.targets.target import Target

C = Command
FENCING = Contract("fencing")
WIDE = Scope(4, 3, workers=2, prompts=("abc", "xyz", "x"), decode=1, resets=2, meanings=("invalidate", "evict"))


class FailsInTwoWays:
    """A step fails after two requests and two runs; and after an output, if a request has two symbols."""

    exact = False
    watched = True
    copies_own_blocks = False

    def __init__(self, setting: Setting) -> None:
        self.scope = setting.scope
        self.workers = Workers(setting.scope.workers, device_blocks=1, host_blocks=1, tokens_per_block=1)
        self.submitted: list[int] = []
        self.runs = 0
        self.handled = False

    def enabled(self) -> list[Command]:
        numbers = [number for number in range(len(self.scope.prompts)) if number not in self.submitted]
        runs = [C("run", (worker, "compute")) for worker in range(self.scope.workers)]
        return [*(C("submit", (number,)) for number in numbers), *runs, C("handle_output"), C("schedule")]

    def perform(self, command: Command) -> Outcome:
        if command.verb == "submit":
            self.submitted.append(int(command.args[0]))
        self.runs += command.verb == "run"
        self.handled = self.handled or command.verb == "handle_output"
        if command.verb == "schedule":
            long = any(len(self.scope.prompts[number]) > 1 for number in self.submitted)
            assert not (len(self.submitted) > 1 and self.runs > 1)
            assert not (self.handled and long)
        return Answer("done")

    def books(self) -> Books:
        return Books(None, None, (), (), False)

    def digest(self) -> bytes:
        return repr((self.submitted, self.runs, self.handled)).encode()

    def close(self) -> None: ...


class Unseen(FailsInTwoWays):
    """Its states cannot be told apart, so that nothing is looked for."""

    digest = None  # type: ignore[assignment]


class InOneMode(FailsInTwoWays):
    contract = FENCING._replace(depth=2)


WALK = (
    C("submit", (2,)),
    C("run", (0, "compute")),
    C("run", (0, "compute")),
    C("submit", (1,)),
    C("run", (1, "compute")),
    C("schedule"),
)  # fmt: skip


def at(target: type[FailsInTwoWays]) -> OpenAt:
    return lambda machine: lambda: cast(Target, target(machine.setting))


def shrunk(target: type[FailsInTwoWays], contract: Contract = FENCING) -> Shrunk:
    open_at = at(target)
    run = watched.performed(contract, open_at, WIDE, WALK, lambda: False).run
    assert run.divergence is not None
    variant = Variant("wide", WIDE, contract)
    return shrunk_with_scope(variant, open_at, WALK, run.divergence, lambda: False, lambda words: None)


def test_a_longer_request_takes_the_place_of_two() -> None:
    found = shrunk(FailsInTwoWays)
    assert found.commands == (C("handle_output"), C("submit", (0,)), C("schedule"))
    assert found.minimal == "shortest"
    assert found.variant.scope == Scope(2, 1, 1, ("ab",), resets=0, aborts=False, preempts=False)


def test_without_a_search_what_is_left_is_what_was_found_with_fewer_requests_workers_and_symbols() -> None:
    found = shrunk(Unseen)
    assert found.commands == (*[C("run", (0, "compute"))] * 2, C("submit", (1,)), C("submit", (0,)), C("schedule"))
    assert found.minimal == "shrunk"
    assert (found.variant.scope.prompts, found.variant.scope.workers) == (("x", "x"), 1)


def test_it_is_shown_in_the_plainest_modes_unless_the_engine_has_no_others() -> None:
    deep = FENCING._replace(depth=2, store_mode="lazy")
    assert shrunk(FailsInTwoWays, deep).variant.contract == FENCING
    assert shrunk(InOneMode, FENCING._replace(depth=2)).variant.contract.depth == 2


def test_what_could_not_be_given_is_left_out() -> None:
    twice = (C("submit", (1,)), *WALK)
    attempt = watched.performed(FENCING, at(FailsInTwoWays), WIDE, twice, lambda: False)
    assert attempt.plan.commands == (*twice[:4], *twice[5:])
    assert (attempt.run.done, len(attempt.run.notes)) == (6, 6)
