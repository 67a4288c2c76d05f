"""fence-before-reuse."""

from collections.abc import Iterable

from kvmodel.launched_step import Step
from kvmodel.setting import Setting
from kvmodel.state import State
from kvmodel.streams import Access, accesses_of_job, accesses_of_step
from kvmodel.transfer_job import LAUNCHED, NONE, Job
from kvspecs.property import Broken, Property

Node = tuple[str, int]


def on_state(setting: Setting, state: State) -> Broken:
    """If two pending operations of a worker touch one block and one writes it, one surely runs after the other."""
    if len(state.jobs) + len(state.steps) < 2:
        return None
    for worker in range(len(state.device_contents)):
        jobs = [job for job in state.jobs if job.progress[worker] == LAUNCHED]
        steps = [step for step in state.steps if not step.ran[worker]]
        if len(jobs) + len(steps) < 2:
            continue
        broken = _race(worker, jobs, steps)
        if broken:
            return broken
    return None


def _race(worker: int, jobs: list[Job], steps: list[Step]) -> Broken:
    """Two operations of a worker that race: each comes after the one before it on its stream and what it waits for."""
    after: dict[Node, set[Node]] = {}
    touched: list[tuple[Node, str, set[tuple[str, int]], set[tuple[str, int]]]] = []
    last: dict[int, Node] = {}
    step_nodes = {step.id: ("step", step.id) for step in steps}
    pending: list[tuple[Node, int, set[Node]]] = []
    for step in steps:
        pending.append((step_nodes[step.id], 0, {("job", job) for job in step.after_jobs}))
        touched.append((("step", step.id), f"the compute of step {step.id}", *_sets(accesses_of_step(step))))
    for job in jobs:
        waits: set[Node] = {("job", other) for other in job.after_jobs}
        if job.after_step != NONE and job.after_step in step_nodes:
            waits.add(step_nodes[job.after_step])
        pending.append((("job", job.id), job.direction, waits))
        touched.append((("job", job.id), f"job {job.id}", *_sets(accesses_of_job(job))))
    for node, stream, waits in pending:
        if stream in last:
            waits.add(last[stream])
        last[stream] = node
        after[node] = waits
    for position, (node, name, reads, writes) in enumerate(touched):
        for other, other_name, other_reads, other_writes in touched[:position]:
            clash = (writes & (other_reads | other_writes)) | (reads & other_writes)
            if clash and not (_comes_after(after, node, other) or _comes_after(after, other, node)):
                tier, block = min(clash)
                return f"{other_name} and {name} race for {tier} block {block} on worker {worker}"
    return None


def _sets(accesses: Iterable[Access]) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    reads: set[tuple[str, int]] = set()
    writes: set[tuple[str, int]] = set()
    for tier, block, is_write in accesses:
        (writes if is_write else reads).add((tier, block))
    return reads, writes


def _comes_after(after: dict[Node, set[Node]], late: Node, early: Node) -> bool:
    seen: set[Node] = set()
    stack = [late]
    while stack:
        for node in after.get(stack.pop(), ()):
            if node == early:
                return True
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return False


PROPERTY = Property(
    "fence-before-reuse",
    "Of two operations that touch one block, one of them writing, one surely runs after the other.",
    on_state,
)
