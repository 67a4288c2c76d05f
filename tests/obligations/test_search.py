"""The search over sequences of commands: an engine of a few lines, with a fault that needs four commands."""

from typing import Any, cast

from kvproof.obligations.books import Books, Pool
from kvproof.obligations.search import Searching
from kvproof.obligations.workers import Workers
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.outcome import Answer, Outcome

SUBMIT, SCHEDULE, ABORT = Command("submit", (0,)), Command("schedule"), Command("abort", (0,))

SHORTEST = (SUBMIT, SCHEDULE, SUBMIT, ABORT, SCHEDULE, ABORT)


class Lamp:
    """It has one block, which a schedule takes for a submitted request and the next one gives back; so does an abort,
    and the second one gives it back twice."""

    exact = False
    watched = True
    copies_own_blocks = False

    def __init__(self) -> None:
        self.workers = Workers(1, device_blocks=1, host_blocks=1, tokens_per_block=1)
        self.held = self.waiting = False
        self.aborts = 0

    def enabled(self) -> list[Command]:
        return [SUBMIT, SCHEDULE, ABORT]

    def perform(self, command: Command) -> Outcome:
        match command.verb:
            case "submit":
                self.waiting = True
            case "schedule":
                self.held, self.waiting = self.waiting and not self.held, self.waiting and self.held
            case "abort" if self.held:
                self.held = False
                self.aborts += 1
        return Answer()

    def books(self) -> Books:
        free = () if self.held else (0,) * max(self.aborts, 1)
        return Books(Pool((int(self.held),), free), None, (), (), self.held or self.waiting)

    def digest(self) -> bytes:
        return bytes((self.held, self.waiting, self.aborts))

    def close(self) -> None: ...


def searched(longest: int, known: str = ""):
    def key(divergence: Divergence) -> str:
        return divergence.property if divergence.property == known else ""

    return Searching(cast(Any, Lamp), key).run(longest, lambda: False, lambda text: None)


def test_the_shortest_sequence_is_found() -> None:
    found = searched(9)
    assert found.divergence is not None
    assert found.divergence.property == "no-double-free"
    assert found.commands == SHORTEST
    assert found.length == 6


def test_no_state_is_gone_on_from_twice() -> None:
    """Idle, waiting, held, both; after an abort idle, waiting and held: four commands from each but the last."""
    found = searched(5)
    assert (found.divergence, found.length, found.states, found.sequences) == (None, 5, 7, 25)


def test_what_is_known_is_gone_on_past() -> None:
    found = searched(7, known="no-double-free")
    assert found.divergence is None
    assert found.passed == {"no-double-free": SHORTEST}


def test_a_search_that_is_cut_says_how_far_it_came() -> None:
    asked = iter([False] * 10 + [True])
    found = Searching(cast(Any, Lamp), lambda divergence: "").run(9, lambda: next(asked), lambda text: None)
    assert (found.length, found.divergence) == (2, None)
