"""What an engine may do in its own way, where it does not promise to choose as the reference does (`exact` is False).

Whatever else a view shows is the contract's, and is compared field by field.
"""

from kvmodel import Action, State
from kvmodel import actions as act
from kvmodel.state import is_dead
from kvmodel.streams import COMPUTE, directions, has_copied, oldest_copy
from kvmodel.transfer_job import STORE, Job, is_copied_everywhere
from kvproof.targets.view import View

DECISIONS = (act.Lookup, act.Promote, act.Admit, act.Grow, act.Launch, act.PreemptUnderPressure)
"""What a scheduler need not do just now, although it could."""


def settled(view: View, wanted: View, state: State) -> View:
    """A view in which what the engine may do in its own way is as the machine has it. Compare the rest.

    state  the machine's, from which `wanted` is made

    device_free, host_free, second_free  in which order free blocks are taken
    requests   how far eager stores have come: some may be left out, or made later
    runnable   an engine may order its streams more strictly, as one does that has a single stream for all copies;
               but if anything can go on, something must. And its copies need not wait for computes that have nothing
               to do with them
    """
    if view.device_free is not None and sorted(view.device_free) == sorted(wanted.device_free or ()):
        view = view._replace(device_free=wanted.device_free)
    if view.host_free is not None and sorted(view.host_free) == sorted(wanted.host_free or ()):
        view = view._replace(host_free=wanted.host_free)
    if view.second_free is not None and sorted(view.second_free) == sorted(wanted.second_free or ()):
        view = view._replace(second_free=wanted.second_free)
    if view.requests is not None:
        pairs = zip(view.requests, wanted.requests or (), strict=True)
        view = view._replace(requests=tuple([seen._replace(stored=right.stored) for seen, right in pairs]))
    if view.runnable is not None:
        seen, right = set(view.runnable), set(wanted.runnable or ())
        if seen <= right.union(_copies_at_once(state)) and bool(seen) == bool(right):
            view = view._replace(runnable=wanted.runnable)
    return view


def may_run(state: State, action: act.Run) -> bool:
    """Whether the oldest copy of a stream may run: what its launch flushed was copied, and no compute that is still to
    run writes what a store reads, or touches what a load writes. The reference has it wait for every compute before
    it."""
    worker, stream = action
    if stream == COMPUTE or is_dead(state, worker):
        return False
    job = oldest_copy(state, worker, stream)
    return job is not None and has_copied(state, worker, job.after_jobs) and not _awaits_compute(state, worker, job)


def _awaits_compute(state: State, worker: int, job: Job) -> bool:
    blocks = {pair.source if job.direction == STORE else pair.destination for pair in job.pairs}
    return any(
        not blocks.isdisjoint(share.table[share.start :] if job.direction == STORE else share.table)
        for step in state.steps
        if step.id <= job.after_step and not step.ran[worker]
        for share in step.shares
    )


def _copies_at_once(state: State) -> set[tuple[int, int]]:
    places = [(worker, stream) for worker in range(len(state.device_contents)) for stream in directions(state)]
    return {place for place in places if may_run(state, act.Run(*place))}


def flushed_before(state: State) -> set[int]:
    """Jobs that an earlier launch flushed and that have not been copied everywhere. Every later launch waits for them
    too: an engine may say so once."""
    waited_for = {job for step in state.steps for job in step.after_jobs}
    waited_for |= {job for other in state.jobs for job in other.after_jobs}
    return {job.id for job in state.jobs if job.flushed and job.id in waited_for and not is_copied_everywhere(job)}


def may_be_refused(action: Action, view: View) -> bool:
    """A decision may be put off, and an operation may have more to wait for than the contract asks."""
    if isinstance(action, act.Run):
        return view.runnable is not None and (action.worker, action.stream) not in view.runnable
    return isinstance(action, DECISIONS)
