"""Allowance: what clients and the environment may still do so many times, resets and faults.

No rule asks how much is left but those of the resets and faults themselves: whatever can happen where less is left can
also happen where more is, and leads to states that differ in what is left alone; what is seen of a target there is the
same. So of two states that differ in that alone, the one with more left stands for the other. A fault that must change
nothing, such as a report that comes twice, then leads to a known state, unless the target has changed.

Early expiries are no part of it: a deadline passes if it can, and so it must be the same where one stands for another.
"""

from kvmodel import State

Left = tuple[int, ...]
"""How often a reset, and each fault but the early expiry, may still occur."""


def left_in(state: State) -> Left:
    return (state.resets_left, *state.faults_left._replace(expiries=0))


def covers(more: Left, less: Left) -> bool:
    """Whether there is at least as much left of everything."""
    return all(one >= other for one, other in zip(more, less, strict=True))


def unspent(start: State, state: State) -> State:
    """The state as it would be if nothing had been used up. start: where nothing is."""
    faults = start.faults_left._replace(expiries=state.faults_left.expiries)
    if state.resets_left == start.resets_left and state.faults_left == faults:
        return state
    return state._replace(resets_left=start.resets_left, faults_left=faults)
