"""Launch: one step goes to the workers: compute, the stores and the cascade made now, queued loads and promotions; and
the fence that it must wait for."""

from kvmodel import actions, policy
from kvmodel.block_pool import take, touch
from kvmodel.fence import required_flush, still_flushed
from kvmodel.forbidden import Forbidden
from kvmodel.guards import guard
from kvmodel.launched_step import Share, Step, reach
from kvmodel.request import RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State, is_dead
from kvmodel.transfer_job import CASCADE, LAUNCHED, LIVE, LOAD, LOST, NONE, PROMOTION, STORE, Job, Pair, is_queued


@guard
def is_awaiting_output(setting: Setting, state: State) -> bool:
    """As many outputs are awaited as the pipeline is deep: one must be handled before the next step is launched."""
    return bool(state.steps) and sum([not step.handled for step in state.steps]) >= setting.contract.depth


@guard
def is_lagging(state: State) -> bool:
    """A worker has not run two steps whose output is handled: it may lag by one step and no more."""
    return len(state.steps) > 1 and state.steps[1].handled


@guard
def has_queued_job(state: State) -> bool:
    """A load or a promotion was made, and no worker knows of it yet."""
    return any(is_queued(job) for job in state.jobs)


@guard
def wants_compute(state: State, number: int) -> bool:
    """It has blocks that are not computed, and that no launched step computes."""
    request = state.requests[number]
    return request.phase == RUNNING and reach(state.steps, number, request.computed) < len(request.table)


@guard
def has_work(setting: Setting, state: State) -> bool:
    """A launch would carry compute or a copy. What is to be flushed alone is no reason for one."""
    if has_queued_job(state) or any(wants_compute(state, number) for number in range(len(state.requests))):
        return True
    cascade = policy.cascade_of(setting, state)
    return bool(cascade) or bool(policy.stores_beside(setting, state, ())[0])


def offered(setting: Setting, state: State) -> bool:
    return not is_awaiting_output(setting, state) and not is_lagging(state) and has_work(setting, state)


def check(setting: Setting, state: State, action: actions.Launch) -> None:
    if is_awaiting_output(setting, state) or is_lagging(state):
        raise Forbidden("launch", "a step is launched before the one before it is done")
    if action.choice is None:
        if not has_work(setting, state):
            raise Forbidden("launch", "a launch would carry neither compute nor copies")
    else:
        _check_choice(setting, state, action.choice)


def _check_choice(setting: Setting, state: State, choice: actions.Launching) -> None:
    """What may be computed, stored and flushed: any part of what is ready, and at least the fence."""
    computed = {number: (start, end) for number, start, end in choice.computes}
    for number, (start, end) in computed.items():
        request = state.requests[number]
        first = reach(state.steps, number, request.computed)
        if request.phase != RUNNING or start != first or not start < end <= len(request.table):
            raise Forbidden("launch", f"request {number} computes blocks {start} to {end}, which are not its next ones")
    live = _carried(state, (STORE, PROMOTION))
    _check_cascade(setting, state, choice.cascade)
    taken = {pair.source for pair in choice.cascade}
    for _, pairs in choice.stores:
        for pair in pairs:
            name = setting.key_names[pair.key - 1]
            if not _holds_key(setting, state, computed, pair.source, pair.key):
                raise Forbidden(
                    "reads-what-was-written",
                    f"{name!r} is stored from device block {pair.source}, which does not hold it",
                )
            if pair.key in live:
                raise Forbidden(
                    "no-block-stored-twice-at-once", f"{name!r} is stored again while a store of it is on its way"
                )
            if state.host.refs[pair.destination] or pair.destination in taken:
                raise Forbidden(
                    "pinned-is-not-evicted", f"host block {pair.destination} is stored into while it is held"
                )
            live.add(pair.key)
            taken.add(pair.destination)
    if setting.contract.pins:
        required = still_flushed(state)
    else:
        tables = tuple([(state.requests[number].table[:end], start) for number, start, end in choice.computes])
        required = required_flush(state, tables, tuple([pairs for _, pairs in choice.stores]))
    missing = set(required) - set(choice.flush)
    if missing:
        raise Forbidden(
            "fence-before-reuse", f"job {min(missing)} is not flushed although the launch touches its blocks"
        )


def _carried(state: State, directions: tuple[int, ...]) -> set[int]:
    """Keys that live jobs of these directions carry."""
    return {pair.key for job in state.jobs if job.direction in directions and job.view == LIVE for pair in job.pairs}


def _check_cascade(setting: Setting, state: State, pairs: tuple[Pair, ...]) -> None:
    """What goes on to the second tier can be hit on the host, and goes where nobody holds the block; what is there
    already, or on its way there, does not go again."""
    carried = _carried(state, (CASCADE,)).union(key for key in state.second.keys if key)
    taken: set[int] = set()
    for pair in pairs:
        name = setting.key_names[pair.key - 1]
        if state.host.keys[pair.source] != pair.key:
            raise Forbidden(
                "reads-what-was-written", f"{name!r} is cascaded from host block {pair.source}, which does not hold it"
            )
        if pair.key in carried:
            raise Forbidden(
                "no-block-stored-twice-at-once", f"{name!r} is cascaded although the second tier has it, or will have"
            )
        if state.second.refs[pair.destination] or pair.destination in taken:
            raise Forbidden(
                "pinned-is-not-evicted", f"second block {pair.destination} is cascaded into while it is held"
            )
        carried.add(pair.key)
        taken.add(pair.destination)


def _holds_key(setting: Setting, state: State, computed: dict[int, tuple[int, int]], block: int, key: int) -> bool:
    """The block is cached under the key, or stands for it in a running request's table once this launch has run, and
    those before it: a store waits for them all."""
    if state.device.keys[block] == key:
        return True
    for number, request in enumerate(state.requests):
        if request.phase == RUNNING and not request.outdated and block in request.table:
            position = request.table.index(block)
            if setting.total_keys[number][position] == key:
                return position < computed.get(number, (0, reach(state.steps, number, request.computed)))[1]
    return False


def apply(setting: Setting, state: State, action: actions.Launch) -> State:
    choice = action.choice or policy.launching(setting, state)
    before = state.steps[-1].id if state.steps else NONE
    steps = state.steps
    if choice.computes:
        shares = tuple(
            [
                Share(number, state.requests[number].table[:end], start, False, state.requests[number].outdated)
                for number, start, end in choice.computes
            ]
        )
        step = Step(before + 1, shares, (False,) * setting.scope.workers, False, choice.flush)
        steps = (*steps, step)
    after = steps[-1].id if steps else NONE
    launched = (LAUNCHED,) * setting.scope.workers
    if state.dead:
        launched = tuple([LOST if is_dead(state, worker) else LAUNCHED for worker in range(setting.scope.workers)])
    device, host, second, requests = state.device, state.host, state.second, list(state.requests)
    jobs: list[Job] = []
    for job in state.jobs:
        if is_queued(job):
            after_step = before if job.direction == LOAD else NONE  # no compute touches what is below the device
            job = job._replace(progress=launched, after_step=after_step, after_jobs=choice.flush)
        elif job.id in choice.flush and not job.flushed:
            job = job._replace(flushed=True)
        jobs.append(job)
    next_job = state.next_job
    if choice.cascade:
        jobs.append(Job(next_job, CASCADE, NONE, choice.cascade, LIVE, launched, False, NONE, choice.flush))
        next_job += 1
        host = touch(host, [pair.source for pair in choice.cascade])
        for pair in choice.cascade:
            _, second = take(second, pair.destination)
    for number, pairs in choice.stores:
        for pair in pairs:
            _, host = take(host, pair.destination)
        if setting.contract.pins:
            device = touch(device, [pair.source for pair in pairs])
        elif number != NONE:
            requests[number] = requests[number]._replace(jobs=(*requests[number].jobs, next_job))
        jobs.append(Job(next_job, STORE, number, pairs, LIVE, launched, False, after, choice.flush))
        next_job += 1
    for number, stored in choice.cursors:
        requests[number] = requests[number]._replace(stored=stored)
    return state._replace(
        device=device,
        host=host,
        second=second,
        requests=tuple(requests),
        jobs=tuple(jobs),
        steps=steps,
        next_job=next_job,
    )
