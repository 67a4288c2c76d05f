"""What is proved to happen at last."""

from typing import NamedTuple

from kvspecs.proof.ranking.fairness import REPORTS_ARRIVE, THE_ENGINE_STEPS, WORKERS_GO_ON, Fairness


class Theorem(NamedTuple):
    """A sentence, of whom it assumes fairness, what is left to be done while it is not so, and the property of the
    catalogue that it is a part of."""

    name: str
    sentence: str
    fair: tuple[Fairness, ...]
    left: str
    part_of: str


WORKERS_DRAIN = Theorem(
    "workers-run-what-was-launched",
    "Every operation that was launched is at last run on every worker.",
    (WORKERS_GO_ON,),
    "the worker's operations of no later launch",
    "everything-drains",
)
JOBS_LEAVE = Theorem(
    "launched-jobs-leave",
    "Every job that was launched at last leaves the job table, also if it was abandoned or forgotten.",
    (WORKERS_GO_ON, REPORTS_ARRIVE),
    "the workers that have not reported it; of each, its operations of no later launch",
    "everything-drains",
)
LOADS_ARE_LAUNCHED = Theorem(
    "queued-loads-are-launched",
    "Every load that is queued is at last launched, unless it is cancelled.",
    (WORKERS_GO_ON, THE_ENGINE_STEPS),
    "the launched step whose output is not handled, with a worker's operations before it; and the launch",
    "everything-drains",
)
RESETS_SUCCEED = Theorem(
    "drained-reset-answers-true",
    "In a drain nothing is in flight at last, and a reset without survivors then answers True, and may not say False; "
    "of the host alone, while no load is queued.",
    (WORKERS_GO_ON, REPORTS_ARRIVE),
    "the jobs in flight; each leaves, by launched-jobs-leave",
    "reset-converges",
)
NOBODY_IS_DEFERRED = Theorem(
    "no-request-is-deferred-for-ever",
    "A request that waits, or loads, at last has no job of its own outstanding: it may be looked up, or it may wake.",
    (WORKERS_GO_ON, REPORTS_ARRIVE, THE_ENGINE_STEPS),
    "the jobs that it waits for; each is launched and leaves, by queued-loads-are-launched and launched-jobs-leave",
    "every-request-can-finish",
)

THEOREMS = (WORKERS_DRAIN, JOBS_LEAVE, LOADS_ARE_LAUNCHED, RESETS_SUCCEED, NOBODY_IS_DEFERRED)

NAMES: tuple[str, ...] = tuple(theorem.name for theorem in THEOREMS)
