"""Reports that name single jobs: a job is complete when every worker has reported it, whoever comes last.

Workers are named and never counted: a second report of one worker does not stand for another's (vLLM counts reports,
which is only right while no worker repeats itself).
"""

from collections.abc import Mapping, Sequence

from kvoffload.errors import UnknownJob
from kvoffload.ids import Failures, JobId, WorkerRank
from kvoffload.transfer_job import TransferJob


def validate(known: Mapping[JobId, TransferJob], jobs: Sequence[JobId], failed: Failures, next_job: JobId) -> None:
    """UnknownJob if an id was never issued, ValueError if a job has no such pair as is said to have failed; a batch
    with either must change nothing at all."""
    for job in jobs:
        if not 0 <= job < next_job:
            raise UnknownJob(f"job {job} was never issued; the next one is {next_job}")
        if job in known and job in failed:
            pairs = len(known[job].pairs)
            for position in failed[job]:
                if not 0 <= position < pairs:
                    raise ValueError(f"pair {position} of job {job} is said to have failed; it has {pairs}")


def credited(
    jobs: Mapping[JobId, TransferJob], job: JobId, worker: WorkerRank, failed: Sequence[int]
) -> TransferJob | None:
    """The job, with this worker's report and its failures noted. None if the report says nothing new.

    That is so for a job that is finished or cancelled, for one that this worker has reported before, and for one that
    was never launched: nobody can have copied it.
    """
    known = jobs.get(job)
    if known is None or not known.launched or worker not in known.awaiting:
        return None
    known.awaiting.discard(worker)
    known.failed.update(failed)
    return known
