"""A launched step: the compute of some requests, on its way through every worker until its output is handled.

At depth 1 at most one step awaits its output, at depth 2 two do, and their outputs are handled oldest first. Then one
request can be in both: the younger step computes on what the older one will have computed (vLLM's asynchronous
scheduling counts tokens as computed when they are scheduled, for the same reason).
"""

from typing import NamedTuple

from kvmodel.guards import guard


class Share(NamedTuple):
    """One request's part of a step: the compute reads table[:start] and writes table[start:].

    left      the request was preempted, aborted or reset meanwhile: its output changes nothing, and the step owns one
              reference on each block of the table until then (vLLM PR 45357: freed blocks that a launched step still
              writes). Each step that the request was in owns its own.
    outdated  it computes from KV of before an `invalidate` reset
    """

    request: int
    table: tuple[int, ...]
    start: int
    left: bool = False
    outdated: bool = False


class Step(NamedTuple):
    """One launched step with compute.

    ran         of each worker: its compute has run
    handled     the scheduler has handled its output
    after_jobs  the jobs whose copies must have run on a worker before this compute runs there (the fence)
    """

    id: int
    shares: tuple[Share, ...]
    ran: tuple[bool, ...]
    handled: bool = False
    after_jobs: tuple[int, ...] = ()


@guard
def is_in_launched_step(steps: tuple[Step, ...], request: int) -> bool:
    """A launched step whose output is not handled computes for this request."""
    return any(
        not step.handled and any(share.request == request and not share.left for share in step.shares) for step in steps
    )


def shares_of(steps: tuple[Step, ...], request: int) -> list[Share]:
    """The request's shares of launched steps whose output is not handled, oldest first; those that it left are not its
    own any more."""
    return [
        share
        for step in steps
        if not step.handled
        for share in step.shares
        if share.request == request and not share.left
    ]


def reach(steps: tuple[Step, ...], request: int, computed: int) -> int:
    """Leading blocks of a running request's table whose KV exists or will, once the launched steps have run (count).

    computed  those that exist, as handled outputs say
    """
    shares = shares_of(steps, request) if steps else ()
    return len(shares[-1].table) if shares else computed


def awaited(steps: tuple[Step, ...]) -> Step | None:
    """The oldest step whose output is not handled."""
    for step in steps:
        if not step.handled:
            return step
    return None
