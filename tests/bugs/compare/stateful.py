"""The stateful test: Hypothesis chooses commands and their arguments, and shrinks what fails."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.bugs.compare.serving import Serving

T = TypeVar("T")


@cache
def _one_of(options: int) -> st.SearchStrategy[int]:
    """Kept, since to make a strategy takes longer than to draw from it."""
    return st.integers(0, options - 1)


def possible(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return precondition(lambda self: self.serving is not None and self.serving.can(command))


class PlainMachine(RuleBasedStateMachine):
    """Every command at any time when it can do something; the books are looked at after each."""

    serving: Serving | None = None

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        def pick(options: Sequence[T]) -> T:
            return options[data.draw(_one_of(len(options)))]

        self.serving = Serving(pick)

    def _do(self, command: str) -> None:
        assert self.serving is not None
        getattr(self.serving, command)()
        self.serving.go_on()

    @rule()
    def submit(self) -> None:
        self._do("submit")

    @possible("step")
    @rule()
    def step(self) -> None:
        self._do("step")

    @possible("serve")
    @rule()
    def serve(self) -> None:
        self._do("serve")

    @possible("run_operation")
    @rule()
    def run_operation(self) -> None:
        self._do("run_operation")

    @possible("deliver")
    @rule()
    def deliver(self) -> None:
        self._do("deliver")

    @possible("fail_copy")
    @rule()
    def fail_copy(self) -> None:
        self._do("fail_copy")

    @possible("lookup")
    @rule()
    def lookup(self) -> None:
        self._do("lookup")

    @possible("depart")
    @rule()
    def depart(self) -> None:
        self._do("depart")

    @possible("reset")
    @rule()
    def reset(self) -> None:
        self._do("reset")

    @possible("misreport")
    @rule()
    def misreport(self) -> None:
        self._do("misreport")

    @possible("free_twice")
    @rule()
    def free_twice(self) -> None:
        self._do("free_twice")

    @invariant()
    def books(self) -> None:
        if self.serving is not None:
            self.serving.check()

    def teardown(self) -> None:
        if self.serving is not None:
            self.serving.drain()
