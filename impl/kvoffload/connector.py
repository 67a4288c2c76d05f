"""The scheduler's side of offloading: the hooks that a scheduler calls, under the names of vLLM's v1 connector.

Where vLLM counts tokens, these hooks count *blocks*: `get_num_new_matched_tokens` says how many blocks.
A connector is plain data: it owns the pools of the host tiers and the transfers, and shares the device pool once it is
bound.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvoffload.block_pool import BlockPool
from kvoffload.ids import Block, Failures, JobId, Key, Meaning, RequestId, Tiers, WorkerRank
from kvoffload.plain import Plain
from kvoffload.plan import LaunchPlan, PlannedShare
from kvoffload.request import Request
from kvoffload.transfer_job import Direction, TransferJob


class SchedulerOutput(NamedTuple):
    """What the scheduler is about to launch.

    step          number of the compute; None: no request computes
    shares        what it computes
    steps_before  computes that were launched earlier (count)
    generation    of the weights now
    """

    step: int | None
    shares: tuple[PlannedShare, ...]
    steps_before: int
    generation: int


class Settled(NamedTuple):
    """A transfer that is complete, of which the scheduler must know.

    loaded  leading blocks of the request that it has brought in (count); 0 if it brought none that may be used
    """

    job: JobId
    request: RequestId
    loaded: int


class ConnectorOutput(NamedTuple):
    """What a report came to.

    settled     the transfer that is complete now, if a request waits for it
    stale       it changed nothing the scheduler can see
    unstored    keys whose store failed: they are not on the host, though requests may count on it
    unreadable  host blocks that a load failed to read: nothing is found in them any more, though lookups may keep them
    lost        further blocks that a transfer between the host and the second tier failed to bring over (count)
    """

    settled: Settled | None = None
    stale: bool = False
    unstored: frozenset[Key] = frozenset()
    unreadable: frozenset[Block] = frozenset()
    lost: int = 0


@dataclass(slots=True)
class Connector(ABC, Plain):
    """Decides what is copied where, and keeps both sides of every copy safe until it is complete."""

    @abstractmethod
    def bind_device_pool(self, pool: BlockPool) -> None:
        """Share the scheduler's device pool. Until then `reset_cache` and launches are refused with NotBound."""

    @abstractmethod
    def get_num_new_matched_tokens(self, request: Request, num_computed_blocks: int) -> int | None:
        """How many *blocks* can be loaded from the host, after the first `num_computed_blocks` of the prompt.

        None: ask again later, transfers of this request are outstanding. Changes nothing, may be asked repeatedly.
        """

    @abstractmethod
    def touch_matched(self, request: Request, num_computed_blocks: int) -> tuple[Block, ...]:
        """Reference the host blocks that `get_num_new_matched_tokens` counted, so that they stay; the caller keeps
        them as pins, and hands them to `update_state_after_alloc` or `release_matched`."""

    @abstractmethod
    def release_matched(self, blocks: Sequence[Block]) -> None:
        """Drop the references of `touch_matched`."""

    @property
    @abstractmethod
    def promotes(self) -> bool:
        """Is there a second tier, from which anything could be promoted?"""

    @abstractmethod
    def can_promote(self, request: Request, num_computed_blocks: int) -> bool:
        """Does the second tier alone have what the request would hit on the host, after the first `num_computed_blocks`
        of the prompt, and has the host room for any of it? Changes nothing."""

    @abstractmethod
    def promote(self, request: Request, num_computed_blocks: int) -> TransferJob:
        """Queue the promotion of that, for which the request then waits. OutOfBlocks if there is nothing to promote."""

    @abstractmethod
    def update_state_after_alloc(
        self, request: Request, blocks: Sequence[Block], matched: Sequence[Block], num_computed_blocks: int
    ) -> TransferJob | None:
        """The request got its table; queue the load of `matched`, whose references pass to it, into `blocks`.

        `blocks` are the destinations in order, at least as many as `matched`. None if nothing matched.
        """

    @abstractmethod
    def has_work(self, requests: Collection[Request], generation: int) -> bool:
        """Would a launch now carry a copy? Changes nothing."""

    @abstractmethod
    def build_connector_meta(self, output: SchedulerOutput, requests: Collection[Request]) -> LaunchPlan | None:
        """Choose the stores and the fence of a launch and take its queued loads: all of them are then launched.

        None, and nothing changed, if there is neither compute nor copy.
        """

    @abstractmethod
    def update_connector_output(
        self, worker: WorkerRank, jobs: Sequence[JobId], failed: Failures
    ) -> Iterator[ConnectorOutput]:
        """One worker reports that it is done with these jobs, in any order and at any time, and what of them failed.

        One output for each job, made as it is asked for: the scheduler takes in each before the next. UnknownJob if a
        job was never issued, ValueError for a failed pair that a job does not have: then nothing has changed.
        """

    @abstractmethod
    def update_connector_mark(
        self, worker: WorkerRank, direction: Direction, mark: JobId, failed: Failures
    ) -> tuple[tuple[JobId, ...], Iterator[ConnectorOutput]]:
        """One worker reports that it is done with every job of this direction up to `mark`, at any time, repeatedly.

        Answers of which jobs that is news, and one output for each as `update_connector_output` does. UnknownJob if no
        such job was issued, ValueError for a failed pair that a job does not have: then nothing has changed.
        """

    @abstractmethod
    def shut_down(self) -> None:
        """A worker is dead: nothing is held or can be found any more, on any tier. Transfers that were launched are
        FORGOTTEN, since their copies may still run on the others, whose late reports change nothing."""

    @abstractmethod
    def expire(self, job: JobId) -> ConnectorOutput:
        """This transfer is overdue: it failed as a whole. Its copies may still run, so it is FORGOTTEN and fenced: what
        is launched from now on waits for them on each worker, and its late reports change nothing.

        UnknownJob if it was never issued, NotOutstanding if there is nothing to expire: then nothing has changed.
        """

    @abstractmethod
    def request_preempted(self, request: Request) -> bool:
        """The request is to lose its table and to wait again; the load that it waits for will publish nothing.

        True: that load still writes into its blocks, the scheduler must keep its table until the load is settled.
        """

    @abstractmethod
    def request_finished(self, request: Request) -> bool:
        """The request ends, complete or aborted. True as for `request_preempted` (vLLM calls it delayed freeing)."""

    @abstractmethod
    def request_reset(self, request: Request) -> None:
        """A reset is about to take the table of a LOADING request: its load must let go of it at once."""

    @abstractmethod
    def reset_cache(self, meaning: Meaning, requests: Collection[Request], tiers: Tiers) -> bool:
        """Clear the keys of these tiers and drop all transfers that would publish there, after the scheduler has taken
        away the tables that are to go.

        True: what was cached there before will never be served again, and nothing stands in the way of whoever asked.
        False: nothing will be served either, but ask again. NotBound before the device pool is bound, and nothing
        changed.
        """
