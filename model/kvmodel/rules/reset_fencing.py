"""What a reset does to jobs under fencing (OffloadingConnector, vLLM PRs 41956 and 48102).

Every job that would publish in a tier of the reset is forgotten: it owns nothing, its completion is stale, and the next
launch waits for its copies. With the jobs go all the ids by which requests waited for them (PR 48102: left behind, they
make a live request hang for ever).
"""

from kvmodel.contract import Contract
from kvmodel.departure import forgotten
from kvmodel.rules.reset_pinning import has_survivors
from kvmodel.state import State
from kvmodel.tiers import Tiers
from kvmodel.transfer_job import FORGOTTEN, publishes_into


def jobs_reset(contract: Contract, state: State, tiers: Tiers) -> State:
    """Every job that would publish in these tiers is forgotten; the others are in nobody's way, and go on."""
    for job in state.jobs:
        if job.view != FORGOTTEN and publishes_into(job, tiers):
            state = forgotten(contract, state, job)
    return state


def answer(state: State, meaning: str) -> bool:
    """Nothing that was forgotten can publish any more; only survivors of an `invalidate` still use what is old."""
    return meaning == "evict" or not has_survivors(state)
