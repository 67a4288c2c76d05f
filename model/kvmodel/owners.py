"""Who owns each reference. Every reference has exactly one named owner; properties count references against owners."""

from collections.abc import Iterator
from typing import NamedTuple

from kvmodel.block_pool import release
from kvmodel.contract import Contract
from kvmodel.request import held
from kvmodel.state import State
from kvmodel.transfer_job import CASCADE, FORGOTTEN, STORE, VIEWS, Job, destinations, is_below_host, sources


class Holding(NamedTuple):
    """Blocks on each of which something owns one reference."""

    device: tuple[int, ...]
    host: tuple[int, ...]
    second: tuple[int, ...] = ()

    def of(self, tier: str) -> tuple[int, ...]:
        """Its blocks of one tier: `device`, `host` or `second`."""
        if tier == "device":
            return self.device
        return self.host if tier == "host" else self.second


NOTHING = Holding((), ())


def holding_of_job(contract: Contract, job: Job) -> Holding:
    """pinning: a job owns its sources and its destinations (PR 39726).

    fencing: a job owns its host blocks alone; its device blocks belong to the request, or to nobody (PR 41956).
    Between the host and the second tier a job owns its sources and its destinations in both disciplines: nobody else
    ever does. A forgotten job owns nothing.
    """
    if job.view == FORGOTTEN:
        return NOTHING
    if is_below_host(job):
        down = job.direction == CASCADE
        return Holding((), sources(job), destinations(job)) if down else Holding((), destinations(job), sources(job))
    device, host = (sources(job), destinations(job)) if job.direction == STORE else (destinations(job), sources(job))
    return Holding(device if contract.pins else (), host)


def released_by_job(contract: Contract, state: State, job: Job) -> State:
    """The state after a job has given up all that it owns."""
    holding = holding_of_job(contract, job)
    state = state._replace(device=release(state.device, holding.device), host=release(state.host, holding.host))
    return state._replace(second=release(state.second, holding.second)) if holding.second else state


def owners(contract: Contract, state: State) -> Iterator[tuple[str, Holding]]:
    """Every owner by name, with what it owns."""
    for number, request in enumerate(state.requests):
        if request.table:
            yield f"request {number}", Holding(held(request.table), ())
        if request.pins is not None:
            yield f"lookup of request {number}", Holding(*request.pins)
    for step in state.steps:
        for share in step.shares:
            if share.left and not step.handled:
                yield f"launched step {step.id}", Holding(held(share.table), ())
    for job in state.jobs:
        yield f"job {job.id} ({VIEWS[job.view]})", holding_of_job(contract, job)
