"""Liveness on an explored graph: can the goal always be reached by fair actions, and can it be avoided for ever?

Weak fairness: what goes on being possible happens at some time. Clients and faults need not act, so only the other
actions count as ways; an action that gives up a lookup counts as a way, and is not repeated for ever.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple


class Edges(NamedTuple):
    """Fair transitions by number of their states, with a code of the action's kind each."""

    sources: array[int]
    targets: array[int]
    kinds: array[int]


Incoming = tuple["array[int]", "array[int]"]
"""Sources of transitions, grouped by target: those of `state` stand at starts[state] .. starts[state + 1]."""


def cannot_reach(
    states: int, edges: Edges, goals: Sequence[int], without: frozenset[int], incoming: Incoming | None = None
) -> int | None:
    """The first state from which no path of fair transitions leads to a goal; kinds in `without` are no way.

    incoming  `incoming_of` the same, where somebody has it
    """
    reached = bytearray(states)
    for goal in goals:
        reached[goal] = 1
    if len(goals) == states:
        return None
    stack = list(goals)
    starts, sources = incoming or incoming_of(states, edges, without)
    while stack:
        state = stack.pop()
        for position in range(starts[state], starts[state + 1]):
            source = sources[position]
            if not reached[source]:
                reached[source] = 1
                stack.append(source)
    trapped = reached.find(0)
    return None if trapped < 0 else trapped


def incoming_of(states: int, edges: Edges, without: frozenset[int]) -> Incoming:
    """The transitions into each state, without those of some kinds."""
    keep = [kind not in without for kind in range(256)]
    starts = array("i", bytes(4 * (states + 1)))
    for target, kind in zip(edges.targets, edges.kinds, strict=True):
        if keep[kind]:
            starts[target + 1] += 1
    for state in range(states):
        starts[state + 1] += starts[state]
    fill = array("i", starts)
    sources = array("i", bytes(4 * starts[states]))
    for source, target, kind in zip(edges.sources, edges.targets, edges.kinds, strict=True):
        if keep[kind]:
            sources[fill[target]] = source
            fill[target] += 1
    return starts, sources


def cyclic_core(states: int, edges: Edges, goal: bytearray, not_repeated: frozenset[int]) -> list[int]:
    """Non-goal states that lie on, or between, cycles of fair transitions that avoid the goal."""
    out: list[list[int]] = [[] for _ in range(states)]
    into: list[list[int]] = [[] for _ in range(states)]
    for source, target, kind in zip(edges.sources, edges.targets, edges.kinds, strict=True):
        if kind not in not_repeated and not goal[source] and not goal[target]:
            out[source].append(target)
            into[target].append(source)
    alive = bytearray(b"\1") * states
    for neighbours, opposite in ((out, into), (into, out)):
        degree = [len(row) for row in neighbours]
        stack = [state for state in range(states) if alive[state] and not degree[state]]
        while stack:
            state = stack.pop()
            if not alive[state]:
                continue
            alive[state] = 0
            for other in opposite[state]:
                degree[other] -= 1
                if not degree[other] and alive[other]:
                    stack.append(other)
    return [state for state in range(states) if alive[state]]


def components(core: Sequence[int], edges: Edges, not_repeated: frozenset[int]) -> list[list[int]]:
    """Strongly connected components of the core with at least one transition inside."""
    members = set(core)
    out: dict[int, list[int]] = {state: [] for state in core}
    for source, target, kind in zip(edges.sources, edges.targets, edges.kinds, strict=True):
        if kind not in not_repeated and source in members and target in members:
            out[source].append(target)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[list[int]] = []
    for root in core:
        if root in index:
            continue
        work = [(root, 0)]
        while work:
            state, position = work.pop()
            if position == 0:
                index[state] = low[state] = len(index)
                stack.append(state)
                on_stack.add(state)
            for offset in range(position, len(out[state])):
                other = out[state][offset]
                if other not in index:
                    work.append((state, offset + 1))
                    work.append((other, 0))
                    break
                if other in on_stack:
                    low[state] = min(low[state], index[other])
            else:
                if low[state] == index[state]:
                    component: list[int] = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == state:
                            break
                    if len(component) > 1 or state in out[state]:
                        found.append(component)
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[state])
    return found
