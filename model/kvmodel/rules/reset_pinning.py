"""What a reset does to jobs under pinning (SimpleCPUOffloadConnector, vLLM PR 39726).

Copies in flight cannot be stopped. Each becomes ABANDONED: it keeps its references until its report, publishes
nothing then, and until all of them are drained the reset answers False. On an idle engine too, a reset after the
drain answers True. The in-flight de-duplication forgets them (PR 41289), so the same key can be stored again.

A reset of one tier abandons what would publish there. The other copies go on and will publish in their tier, which is
not reset; but those that have references there are a cause for False too: whoever asked cannot have the tier. A store
and a load have references on both sides, a cascade and a promotion none on the device.
"""

from kvmodel.contract import Contract
from kvmodel.guards import guard
from kvmodel.state import State
from kvmodel.tiers import Tiers, names_device
from kvmodel.transfer_job import ABANDONED, FORGOTTEN, holds_block_of, publishes_into


@guard
def is_drained(state: State, tiers: Tiers) -> bool:
    """No job is live or abandoned that holds a block of these tiers."""
    return not any(job.view != FORGOTTEN and holds_block_of(job, tiers) for job in state.jobs)


@guard
def has_survivors(state: State) -> bool:
    """A request came through the reset with its blocks."""
    return any(request.table for request in state.requests)


def jobs_reset(contract: Contract, state: State, tiers: Tiers) -> State:
    """Every job that would publish in these tiers, and that the reset's requests did not cancel, is abandoned; what has
    expired stays forgotten."""
    jobs = [
        job._replace(view=ABANDONED) if job.view != FORGOTTEN and publishes_into(job, tiers) else job
        for job in state.jobs
    ]
    return state._replace(jobs=tuple(jobs))


def answer(state: State, tiers: Tiers) -> bool:
    """Nothing holds a block of these tiers: survivors hold blocks of the device alone."""
    return is_drained(state, tiers) and not (names_device(tiers) and has_survivors(state))
