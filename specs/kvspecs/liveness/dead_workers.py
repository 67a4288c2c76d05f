"""What waits for a worker that has died: liveness goals exempt exactly this, and nothing else.

Every block has its part on every worker: so a dead one is missed by every compute that it has not run, and by every
transfer that it has not reported.
"""

from kvmodel.launched_step import Step, shares_of
from kvmodel.prefix_cache import longest_hit
from kvmodel.request import DONE, RUNNING, WAITING
from kvmodel.rules.launch import is_awaiting_output
from kvmodel.setting import Setting
from kvmodel.state import State


def never_ends(setting: Setting, state: State, step: Step) -> bool:
    """A dead worker has not run it, and nobody will declare it dead: its output never comes."""
    if setting.contract.expires:
        return False
    return any(died and not ran for died, ran in zip(state.dead, step.ran, strict=False))


def never_launches(setting: Setting, state: State) -> bool:
    """The pipeline is full of steps that never end."""
    return is_awaiting_output(setting, state) and any(never_ends(setting, state, step) for step in state.steps)


def waits_for_dead(setting: Setting, state: State, number: int) -> bool:
    """It has blocks to compute, beside those that every dead worker has computed already.

    One that waits for admission has, unless the device holds all of it; so has one that loads, with more than its load.
    """
    if setting.contract.expires or not any(state.dead):
        return False
    request = state.requests[number]
    total = setting.total_keys[number]
    if request.phase == WAITING:
        return len(longest_hit(state.device, total)) < len(total)
    if request.phase != RUNNING:
        return request.phase != DONE and len(request.table) < len(total)
    ended = [len(share.table) for share in shares_of(_ending(setting, state), number)]
    return max(request.computed, *ended, 0) < len(total)


def _ending(setting: Setting, state: State) -> tuple[Step, ...]:
    """The steps that end: those behind one that never does are handled after it, and so never."""
    for position, step in enumerate(state.steps):
        if never_ends(setting, state, step):
            return state.steps[:position]
    return state.steps
