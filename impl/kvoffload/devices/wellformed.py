"""What every device with real memory refuses when it is enqueued: it could only fail later, where nobody sees whose it
was."""

from collections.abc import Container

from kvoffload.errors import UnknownBlock
from kvoffload.operations import Compute, Operation, Stream


def check(operation: Operation, device_blocks: int, host_blocks: int, outstanding: Container[int]) -> None:
    """Raises UnknownBlock for a block outside of its tier, ValueError for a copy on the compute stream or of a job that
    is outstanding already."""
    if isinstance(operation, Compute):
        for share in operation.shares:
            for block, _ in share.reads + share.writes:
                check_block(block, device_blocks)
        return
    if operation.stream is Stream.COMPUTE:
        raise ValueError(f"a copy belongs to the store or the load stream: {operation}")
    if operation.job in outstanding:
        raise ValueError(f"job {operation.job} is outstanding on this worker already")
    stored = operation.stream is Stream.STORE
    for source, block in operation.pairs:
        check_block(source, device_blocks if stored else host_blocks)
        check_block(block, host_blocks if stored else device_blocks)


def check_block(block: int, blocks: int) -> None:
    """Raises UnknownBlock for a block outside of its tier (torch would take -1 for the last one)."""
    if not 0 <= block < blocks:
        raise UnknownBlock(f"block {block} of {blocks}")
