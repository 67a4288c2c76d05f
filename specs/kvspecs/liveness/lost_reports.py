"""What waits for a report that will never come, or for a dead worker: liveness goals exempt exactly this.

With a deadline nothing is exempt: what will never be reported expires.
"""

from kvmodel.owners import holding_of_job
from kvmodel.policy import hits, wants_to_grow
from kvmodel.request import WAITING
from kvmodel.request import held as held_by
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import FORGOTTEN, LOST, Job, is_queued
from kvspecs.liveness.dead_workers import waits_for_dead


def is_stuck(setting: Setting, state: State, job: Job) -> bool:
    """The job can never be completed, nobody will clean it up, and the scheduler has not dropped it. One that is queued
    will be given to the dead too, if ever to anybody."""
    lost = LOST in job.progress or (is_queued(job) and any(state.dead))
    return lost and job.view != FORGOTTEN and not setting.contract.expires


def waits_for_lost(setting: Setting, state: State, number: int) -> bool:
    """It waits for a stuck job, or for more device blocks than stuck jobs and those who wait for them leave it.

    Blocks that it shares with them, in its table or as hits, it need not wait for.
    """
    stuck = [job for job in state.jobs if is_stuck(setting, state, job)]
    return bool(stuck or state.dead) and number in _waiting(setting, state, stuck)


def _waiting(setting: Setting, state: State, stuck: list[Job]) -> set[int]:
    """All that wait. One that runs keeps its blocks meanwhile, but from earlier ones that run: those preempt it.

    Nobody is admitted while somebody who runs wants a block, also one who waits for it in vain.
    """
    own = {
        number
        for number, request in enumerate(state.requests)
        if waits_for_dead(setting, state, number) or any(job.id in request.jobs for job in stuck)
    }
    kept = {block for job in stuck for block in holding_of_job(setting.contract, job).device}
    kept.update(block for number in own for block in held_by(state.requests[number].table))
    found = set(own)
    while True:
        growing = any(wants_to_grow(setting, state, number) for number in found)
        more = {
            number
            for number, request in enumerate(state.requests)
            if number not in found
            and ((growing and request.phase == WAITING) or _lacks_blocks(setting, state, number, kept, found))
        }
        if not more:
            return found
        found |= more


def _lacks_blocks(setting: Setting, state: State, number: int, kept: set[int], waiting: set[int]) -> bool:
    request = state.requests[number]
    held = set(kept)
    for other in waiting:
        if not request.table or other < number:
            held.update(held_by(state.requests[other].table))
    own = held_by(request.table) or hits(setting, state, number).device
    held.difference_update(own)
    shared = len(own) - len(set(own))  # positions of one block
    return len(state.device.refs) - len(held) < len(setting.total_keys[number]) - shared
