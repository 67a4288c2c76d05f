"""The fence: the copies that must have run on a worker before anything of a launch runs there (vLLM PR 41956).

Under fencing a device block may be reused while a copy of it still runs. Whoever reuses it flushes that copy first.
"""

from kvmodel.guards import guard
from kvmodel.state import State
from kvmodel.transfer_job import LOAD, STORE, Job, Pair, is_below_host, is_copied_everywhere, is_queued


@guard
def conflicts(
    job: Job, device_writes: set[int], host_writes: set[int], device_reads: set[int], host_reads: set[int]
) -> bool:
    """The job's copies and the launch touch one block, and one of them writes it.

    Between the host and the second tier a job owns both its sides, and a launch writes nothing that is owned: what a
    reset or a deadline has dropped is flushed already.
    """
    if is_below_host(job):
        return False
    if job.direction == STORE:
        source_writes, destination_uses = device_writes, host_writes | host_reads
    else:
        source_writes, destination_uses = host_writes, device_writes | device_reads
    return any(pair.source in source_writes or pair.destination in destination_uses for pair in job.pairs)


def still_flushed(state: State) -> tuple[int, ...]:
    """Ids of the jobs that every launch must flush whatever it touches: under pinning those that expired, since all
    others own what they touch."""
    return tuple([job.id for job in state.jobs if job.flushed])


def required_flush(
    state: State,
    tables: tuple[tuple[tuple[int, ...], int], ...],
    stores: tuple[tuple[Pair, ...], ...],
) -> tuple[int, ...]:
    """Ids of the jobs that a launch must flush.

    tables  (table, start) of each request computed: table[:start] is read, table[start:] is written
    stores  the pairs of each store job made now; queued loads are found in the table

    A job that is to be flushed stays so until its copies have run everywhere: every later launch waits for it too.
    """
    loads = [job.pairs for job in state.jobs if job.direction == LOAD and is_queued(job)]
    device_writes = {block for table, start in tables for block in table[start:]}
    device_writes |= {pair.destination for pairs in loads for pair in pairs}
    device_reads = {block for table, start in tables for block in table[:start]}
    device_reads |= {pair.source for pairs in stores for pair in pairs}
    host_writes = {pair.destination for pairs in stores for pair in pairs}
    host_reads = {pair.source for pairs in loads for pair in pairs}
    return tuple(
        [
            job.id
            for job in state.jobs
            if not is_queued(job)
            and not is_copied_everywhere(job)
            and (job.flushed or conflicts(job, device_writes, host_writes, device_reads, host_reads))
        ]
    )
