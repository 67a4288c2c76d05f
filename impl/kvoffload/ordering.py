"""Which operation waits for which: stated here once, for every kind of device.

Streams are FIFO, so that waiting for a step is waiting for all before it. On each worker by itself:

- a compute waits for the fence;
- a store waits for the fence and for every step launched so far, its own launch's too: that one may write its sources
  (vLLM PR 46278: a store that overtakes the compute saves old bytes);
- a load waits for the fence and for every step launched before: one of them may be the last to read its destinations
  (vLLM issue 47282);
- a cascade and a promotion wait for the fence: no compute touches what they touch.

The fence is the launch's flush set. A flushed job was enqueued by an earlier launch and waits only for older ones, so
there is never a cycle. Waiting for a job that has already run on that worker is waiting for nothing.
"""

from kvoffload.ids import JobId
from kvoffload.operations import Compute, Copy, Operation, Share, Stream
from kvoffload.plan import LaunchPlan, PlannedCopy

NO_STEP = -1
"""What a copy waits for that waits for no compute."""


def compute(plan: LaunchPlan) -> Compute | None:
    """The compute of this launch, if it has one."""
    if plan.step is None:
        return None
    return Compute(plan.step, tuple([Share(share.reads, share.writes) for share in plan.shares]), plan.flush)


def stores(plan: LaunchPlan) -> tuple[Copy, ...]:
    """The stores of this launch, in order of job."""
    last = plan.steps_before - 1 if plan.step is None else plan.step
    return tuple([_copy(store, Stream.STORE, last, plan.flush) for store in plan.stores])


def loads(plan: LaunchPlan) -> tuple[Copy, ...]:
    """The loads of this launch, in order of job."""
    return tuple([_copy(load, Stream.LOAD, plan.steps_before - 1, plan.flush) for load in plan.load_copies])


def cascades(plan: LaunchPlan) -> tuple[Copy, ...]:
    """The cascades of this launch, in order of job."""
    return tuple([_copy(cascade, Stream.CASCADE, NO_STEP, plan.flush) for cascade in plan.cascades])


def promotions(plan: LaunchPlan) -> tuple[Copy, ...]:
    """The promotions of this launch, in order of job."""
    return tuple([_copy(promotion, Stream.PROMOTION, NO_STEP, plan.flush) for promotion in plan.promotions])


def operations(plan: LaunchPlan) -> tuple[Operation, ...]:
    """Everything that one launch enqueues on a worker; every worker gets the same."""
    step = compute(plan)
    copies: tuple[Operation, ...] = promotions(plan) + loads(plan) + cascades(plan) + stores(plan)
    return copies if step is None else (step, *copies)


def _copy(planned: PlannedCopy, stream: Stream, last_step: int, fence: tuple[JobId, ...]) -> Copy:
    return Copy(
        planned.job, stream, tuple([(pair.source, pair.destination) for pair in planned.pairs]), last_step, fence
    )
