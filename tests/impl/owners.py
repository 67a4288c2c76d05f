"""Who holds each reference of an engine, counted from those who hold them."""

from collections import Counter

from kvoffload.engine import Engine
from kvoffload.ids import NO_BLOCK, Block
from kvoffload.transfer_job import Direction, JobState


def owners(engine: Engine) -> tuple[Counter[Block], Counter[Block]]:
    """References on device and on host blocks, of an engine without a second tier."""
    device: Counter[Block] = Counter()
    host: Counter[Block] = Counter()
    for request in engine.requests.values():
        device.update(request.table)
        if request.pins is not None:
            device.update(request.pins.device)
            host.update(request.pins.host)
    for step in engine.scheduler.pipeline:
        for share in step.shares.values():
            device.update(share.blocks if share.left else ())
    for job in engine.jobs.values():
        if job.state is not JobState.FORGOTTEN:
            store = job.direction is Direction.STORE
            host.update([pair.destination if store else pair.source for pair in job.pairs])
            if engine.config.discipline == "pinning":
                device.update([pair.source if store else pair.destination for pair in job.pairs])
    del device[NO_BLOCK]  # what a window has left behind
    return device, host
