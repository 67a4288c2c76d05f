"""What a reset does to jobs under pinning (SimpleCPUOffloadConnector, vLLM PR 39726).

Copies in flight cannot be stopped. Each becomes ABANDONED: it keeps its references until its report, publishes
nothing then, and until all of them are drained the reset answers False. On an idle engine too, a reset after the
drain answers True. The in-flight de-duplication forgets them (PR 41289), so the same key can be stored again.
"""

from kvmodel.contract import Contract
from kvmodel.guards import guard
from kvmodel.state import State
from kvmodel.transfer_job import ABANDONED, FORGOTTEN


@guard
def is_drained(state: State) -> bool:
    """No job is live or abandoned."""
    return all(job.view == FORGOTTEN for job in state.jobs)


@guard
def has_survivors(state: State) -> bool:
    """A request came through the reset with its blocks."""
    return any(request.table for request in state.requests)


def jobs_reset(contract: Contract, state: State) -> State:
    """Every job that the reset's requests did not cancel is abandoned."""
    return state._replace(jobs=tuple([job._replace(view=ABANDONED) for job in state.jobs]))


def answer(state: State) -> bool:
    return is_drained(state) and not has_survivors(state)
