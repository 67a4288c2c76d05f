"""every-full-block-is-stored-or-refused."""

from kvmodel.actions import Action, Launch
from kvmodel.block_pool import HOLE
from kvmodel.policy import is_being_stored
from kvmodel.prefix_cache import is_cached
from kvmodel.request import RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.transfer_job import DIRECTIONS, PROMOTION, STORE, Job
from kvspecs.liveness.dead_workers import never_launches
from kvspecs.property import Broken, LivenessProperty, Property
from kvspecs.safety.completions import FAILURES, failed_now


def goal(setting: Setting, state: State) -> bool:
    """No running request has a computed block that was not offered, that the host lacks, and that it has room for. What
    its window has left it has no more. Where nothing will be launched any more, as workers died, nothing is offered."""
    if setting.contract.lazy or not state.host.free or never_launches(setting, state):
        return True
    return not any(
        request.phase == RUNNING
        and not request.outdated
        and any(
            request.table[position] != HOLE and not is_cached(state.host, key) and not is_being_stored(state, key)
            for position, key in enumerate(setting.total_keys[number])
            if request.stored <= position < request.computed
        )
        for number, request in enumerate(state.requests)
    )


def on_step(setting: Setting, before: State, action: Action, after: State) -> Broken:
    """A launch moves a request's cursor only over blocks that the host has or that are on their way there: what the
    cursor has passed is not offered again, so the goal cannot see it (vLLM PR 46972: a cursor that ran ahead). A store
    that failed was not refused: whoever has passed over what it carried steps back, and offers it again."""
    for job, positions in failed_now(before, action, after):
        broken = _given_up(setting, job, positions, after)
        if broken:
            return broken
    if not isinstance(action, Launch):
        return None
    for number, (old, new) in enumerate(zip(before.requests, after.requests, strict=True)):
        for position in range(old.stored, new.stored):
            key = setting.total_keys[number][position]
            if new.table[position] != HOLE and not is_cached(before.host, key) and not is_being_stored(after, key):
                name = setting.key_names[key - 1]
                return f"request {number} passes over {name!r}, which is neither on the host nor on its way"
    return None


def _given_up(setting: Setting, job: Job, positions: frozenset[int], after: State) -> Broken:
    if job.direction not in (STORE, PROMOTION):
        return None
    failed = {job.pairs[position].key for position in positions}
    for number, request in enumerate(after.requests):
        for key in setting.total_keys[number][: request.stored]:
            if key in failed and request.phase == RUNNING and not is_cached(after.host, key):
                name = setting.key_names[key - 1]
                what = DIRECTIONS[job.direction]
                return f"the {what} of {name!r} failed, and request {number} will not offer it again"
    return None


PROPERTY = LivenessProperty(
    "every-full-block-is-stored-or-refused",
    "Every computed block of a running request is stored, found on the host already, or refused as the host is full.",
    goal,
    without=frozenset({"Finish", "PreemptUnderPressure"}),
)

PASSED_OVER = Property(PROPERTY.name, PROPERTY.sentence, on_step=on_step, actions=FAILURES | {"Launch"})
"""The same, where one step breaks it for good."""
