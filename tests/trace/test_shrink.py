"""Shrinking keeps the failure and leaves no command that could go."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kvproof.targets.command import Command
from kvproof.trace.shrink import shrink


def commands(numbers: Sequence[int]) -> tuple[Command, ...]:
    return tuple(Command("report", (0, number)) for number in numbers)


@given(st.sets(st.integers(0, 59), min_size=1, max_size=6))
def test_what_is_needed_stays_and_nothing_else(needed: set[int]) -> None:
    found = shrink(commands(range(60)), lambda kept: set(commands(sorted(needed))) <= set(kept), lambda: False)
    assert found == commands(sorted(needed))


@given(st.integers(2, 40), st.integers(1, 20))
def test_no_single_command_can_go(length: int, pairs: int) -> None:
    def fails(kept: Sequence[Command]) -> bool:  # needs a number of any commands, in pairs
        return len(kept) >= min(pairs, length) and len(kept) % 2 == length % 2

    found = shrink(commands(range(length)), fails, lambda: False)
    assert fails(found)
    assert not any(fails(found[:index] + found[index + 1 :]) for index in range(len(found)))


def test_a_cut_keeps_what_was_reached() -> None:
    calls = 0

    def cut() -> bool:
        nonlocal calls
        calls += 1
        return calls > 3

    found = shrink(commands(range(64)), lambda kept: Command("report", (0, 0)) in kept, cut)
    assert Command("report", (0, 0)) in found
    assert len(found) < 64
