"""A launched step: the compute of some requests, on its way through every worker until its output is handled."""

from typing import NamedTuple

from kvmodel.guards import guard


class Share(NamedTuple):
    """One request's part of a step: the compute reads table[:start] and writes table[start:].

    left      the request was preempted, aborted or reset meanwhile: its output changes nothing, and the step owns
              the table's references until then (vLLM PR 45357: freed blocks that a launched step still writes)
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


def awaited(steps: tuple[Step, ...]) -> Step | None:
    """The oldest step whose output is not handled."""
    for step in steps:
        if not step.handled:
            return step
    return None
