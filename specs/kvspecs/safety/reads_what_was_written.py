"""reads-what-was-written."""

from kvmodel.block_pool import HOLE
from kvmodel.contents import describe
from kvmodel.request import RUNNING
from kvmodel.setting import Setting
from kvmodel.state import State, contents_of, is_dead
from kvmodel.streams import directions, may_compute, may_copy, oldest_compute, oldest_copy
from kvmodel.transfer_job import LIVE, TIERS_OF
from kvspecs.property import Broken, Property


def on_state(setting: Setting, state: State) -> Broken:
    """Judged when an operation may read: every runnable one would read what its launch promised, on its worker. Nothing
    is read on a dead one."""
    for worker, device in enumerate(state.device_contents):
        if state.dead and is_dead(state, worker):
            continue
        step = oldest_compute(state, worker) if state.steps else None
        if step is not None and may_compute(state, worker, step):
            for share in step.shares:
                keys = setting.total_keys[share.request]
                for position in range(share.start):
                    wanted = -keys[position] if share.outdated else keys[position]
                    if share.table[position] == HOLE:
                        continue
                    found = device[share.table[position]]
                    if found != wanted:
                        return _misread(
                            setting,
                            f"the compute of step {step.id}",
                            worker,
                            "device",
                            share.table[position],
                            wanted,
                            found,
                        )
        for direction in directions(state) if state.jobs else ():
            job = oldest_copy(state, worker, direction)
            if job is None or job.view != LIVE or not may_copy(state, worker, job):
                continue
            tier = TIERS_OF[direction][0]
            contents = contents_of(state, tier)[worker]
            for pair in job.pairs:
                if contents[pair.source] != pair.key:
                    return _misread(
                        setting, f"job {job.id}", worker, tier, pair.source, pair.key, contents[pair.source]
                    )
        for number, request in enumerate(state.requests):
            if request.phase != RUNNING or not request.computed or (step is not None):
                continue
            keys = setting.total_keys[number]
            for position in range(request.computed):
                wanted = -keys[position] if request.outdated else keys[position]
                if request.table[position] == HOLE:
                    continue
                found = device[request.table[position]]
                if found != wanted:
                    return _misread(
                        setting, f"request {number}", worker, "device", request.table[position], wanted, found
                    )
    return None


def _misread(setting: Setting, who: str, worker: int, tier: str, block: int, wanted: int, found: int) -> str:
    names = setting.key_names
    return (
        f"{who} reads {tier} block {block} on worker {worker}, expects {describe(wanted, names)}"
        f" and finds {describe(found, names)}"
    )


PROPERTY = Property(
    "reads-what-was-written",
    "Every operation and every running request reads what was written under the key that it asks for, on every worker.",
    on_state,
)
