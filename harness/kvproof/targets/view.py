"""The view: what can be seen of a target after every command, and what the machine says should be seen there."""

from typing import NamedTuple

from kvmodel import Action, State
from kvmodel import actions as act
from kvmodel.contents import Contents
from kvmodel.prefix_cache import findable
from kvmodel.request import ABSENT, DONE, Request
from kvmodel.scope import Scope
from kvmodel.streams import runnable
from kvmodel.transfer_job import FORGOTTEN, REPORTED, Job, Pair
from kvproof.targets.announced import Announced

Blocks = tuple[int, ...]


class JobView(NamedTuple):
    """A transfer that the scheduler has not dropped.

    awaiting  workers that have not reported it, in order
    failed    positions of the pairs that some worker has reported as not copied, in order
    """

    id: int
    direction: int
    request: int
    pairs: tuple[Pair, ...]
    view: int
    awaiting: tuple[int, ...]
    failed: tuple[int, ...] = ()


class ShareView(NamedTuple):
    """One request's part of a launched step whose output is awaited.

    step  which of these steps it is: 0 is the oldest, whose output is handled next
    """

    request: int
    table: Blocks
    start: int
    left: bool
    step: int = 0


class View(NamedTuple):
    """What a target shows. A field that is None is not declared, and not compared; reports say how many were.

    Blocks, requests and workers are numbers from 0, jobs have the ids that come of counting them as they are made, and
    keys are those of the Setting. Every sequence is a tuple. Of a target that is not exact, the order of free blocks,
    the store cursors, and which of several operations may run first are its own affair.

    device_refs, host_refs, second_refs  references of each block; of a second tier that the scope has not: none
    device_keys, host_keys, second_keys  key that can be hit in each block, 0: none
    device_free, host_free, second_free  free blocks, the next one to be taken first
    requests  each with phase, table, progress, pins and the jobs it waits for (ids in order)
    jobs      by id, without those that were forgotten
    launched  what the steps compute whose output is awaited, oldest first; empty: none is awaited
    runnable  (worker, stream) whose oldest operation could run now
    contents  of every block on every worker: device, then host, then the second tier if there is one
    announced  keys that can be hit according to the target's events, in order: on the device, then on the host, then on
               the second tier if there is one; one that was stored twice twice, one that was removed and was not there
               as its negative
    has_work  whether the engine must be stepped on: as long as a request, an awaited output or a job that was not
              forgotten is left, so that an idle one hears of the transfers that hold blocks
    offers    what the scheduler would do next if it was asked: keys of actions
    """

    device_refs: Blocks | None = None
    device_keys: Blocks | None = None
    device_free: Blocks | None = None
    host_refs: Blocks | None = None
    host_keys: Blocks | None = None
    host_free: Blocks | None = None
    second_refs: Blocks | None = None
    second_keys: Blocks | None = None
    second_free: Blocks | None = None
    requests: tuple[Request, ...] | None = None
    jobs: tuple[JobView, ...] | None = None
    launched: tuple[ShareView, ...] | None = None
    runnable: tuple[tuple[int, int], ...] | None = None
    contents: tuple[Contents, ...] | None = None
    announced: Announced | None = None
    has_work: bool | None = None
    offers: frozenset[tuple[object, ...]] | None = None


FIELDS = View._fields

SECOND = ("second_refs", "second_keys", "second_free")
"""Fields of the second tier."""

TIERS = ("device", "host", "second")
"""In the order of `contents` and `announced`."""

OFFERED = (
    act.Lookup,
    act.Promote,
    act.Admit,
    act.Grow,
    act.Launch,
    act.Wake,
    act.Finish,
    act.HandleOutput,
    act.PreemptUnderPressure,
)
"""Actions whether to take which is the scheduler's decision: those that `offers` lists."""


def fields_of(scope: Scope) -> tuple[str, ...]:
    """Names of the fields that there is anything to see in."""
    return FIELDS if scope.second_blocks else tuple([name for name in FIELDS if name not in SECOND])


def declared(view: View) -> frozenset[str]:
    """Names of the fields that a target declares."""
    return frozenset(name for name, value in zip(FIELDS, view, strict=True) if value is not None)


def compared_fields(target: object, view: View) -> frozenset[str]:
    """Names of the fields that are compared: those of the view, and offers where an exact target has them."""
    offers = getattr(target, "exact", False) and hasattr(target, "offers")
    return declared(view) | ({"offers"} if offers else frozenset())


def expected(state: State, offers: frozenset[tuple[object, ...]] | None = None) -> View:
    """What the machine says should be seen in this state."""
    contents: tuple[Contents, ...] = (state.device_contents, state.host_contents)
    announced: Announced = (findable(state.device), findable(state.host))
    if state.second_contents:
        contents, announced = (*contents, state.second_contents), (*announced, findable(state.second))
    return View(
        state.device.refs,
        state.device.keys,
        state.device.free,
        state.host.refs,
        state.host.keys,
        state.host.free,
        state.second.refs,
        state.second.keys,
        state.second.free,
        state.requests,
        tuple(
            [
                JobView(
                    job.id,
                    job.direction,
                    job.request,
                    job.pairs,
                    job.view,
                    tuple([worker for worker, progress in enumerate(job.progress) if progress != REPORTED]),
                    _reported_failures(job) if job.failed else (),
                )
                for job in state.jobs
                if job.view != FORGOTTEN
            ]
        ),
        _launched(state) if state.steps else (),
        tuple(runnable(state)),
        contents,
        announced,
        _has_work(state),
        offers,
    )


def _has_work(state: State) -> bool:
    return (
        any(not step.handled for step in state.steps)
        or any(request.phase not in (ABSENT, DONE) for request in state.requests)
        or any(job.view != FORGOTTEN for job in state.jobs)
    )


def _launched(state: State) -> tuple[ShareView, ...]:
    awaiting = [step for step in state.steps if not step.handled]
    return tuple(
        [
            ShareView(share.request, share.table, share.start, share.left, position)
            for position, step in enumerate(awaiting)
            for share in step.shares
        ]
    )


def _reported_failures(job: Job) -> tuple[int, ...]:
    return tuple(sorted({position for worker, position in job.failed if job.progress[worker] == REPORTED}))


def offers_of(actions: list[Action]) -> frozenset[tuple[object, ...]]:
    """Keys of what the machine's scheduler may do next, among all that is possible."""
    return frozenset([act.key(action) for action in actions if isinstance(action, OFFERED)])
