"""What every device with real memory refuses when it is enqueued: it could only fail later, where nobody sees whose it
was."""

from collections.abc import Container, Mapping

from kvoffload.errors import UnknownBlock
from kvoffload.operations import ENDS, Compute, Operation, Stream, Tier


def check(operation: Operation, blocks: Mapping[Tier, int], outstanding: Container[int]) -> None:
    """Raises UnknownBlock for a block outside of its tier, ValueError for a copy on the compute stream, of a tier that
    is not there, or of a job that is outstanding already.

    blocks  of each tier that there is (count)
    """
    if isinstance(operation, Compute):
        for share in operation.shares:
            for block, _ in share.reads + share.writes:
                check_block(block, blocks[Tier.DEVICE])
        return
    if operation.stream is Stream.COMPUTE:
        raise ValueError(f"a copy does not belong on the compute stream: {operation}")
    read_from, written_to = ENDS[operation.stream]
    if read_from not in blocks or written_to not in blocks:
        raise ValueError(f"this device has no second tier for {operation}")
    if operation.job in outstanding:
        raise ValueError(f"job {operation.job} is outstanding on this worker already")
    sources, destinations = blocks[read_from], blocks[written_to]
    for source, block in operation.pairs:
        if not (0 <= source < sources and 0 <= block < destinations):
            check_block(source, sources)
            check_block(block, destinations)


def check_block(block: int, blocks: int) -> None:
    """Raises UnknownBlock for a block outside of its tier (torch would take -1 for the last one)."""
    if not 0 <= block < blocks:
        raise UnknownBlock(f"block {block} of {blocks}")
