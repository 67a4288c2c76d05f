"""One rank: it puts a launch's operations on its streams, and collects the copies that have run."""

from collections.abc import Sequence

from kvoffload import ordering
from kvoffload.completions.marks import MARKED, StreamMark, WorkerMarks
from kvoffload.devices.device import Device
from kvoffload.errors import UnknownJob
from kvoffload.ids import Failures, JobId, WorkerRank
from kvoffload.plan import LaunchPlan
from kvoffload.transfer_job import Direction


class Worker:
    """The worker's side of the connector, with the hooks of vLLM's v1 connector under their names.

    One launch is `handle_preemptions`, `start_load_kv`, `compute`, `wait_for_save`, in that order; `launch` does it
    all. None of these blocks: they enqueue, and the order between streams is in the operations themselves.
    """

    def __init__(self, rank: WorkerRank, device: Device, marks: WorkerMarks | None = None) -> None:
        """marks: of its streams, where it reports marks; None: it reports single jobs."""
        self.rank = rank
        self.marks = marks
        self.register_kv_caches(device)

    def register_kv_caches(self, device: Device) -> None:
        """Use the KV memory and the streams of this device from now on; a restarted worker calls it again."""
        self.device = device
        self._plan: LaunchPlan | None = None

    def launch(self, plan: LaunchPlan) -> None:
        """Enqueue everything that one launch has for this worker."""
        self.handle_preemptions(plan)
        self.start_load_kv()
        self.compute()
        self.wait_for_save()

    def handle_preemptions(self, plan: LaunchPlan) -> None:
        """Begin a launch. Its flush set keeps blocks of preempted requests safe from it; vLLM waits for those copies
        here, this worker hands the waits to the operations, so that the streams do not stand still for each other."""
        self._plan = plan

    def start_load_kv(self) -> None:
        """Enqueue the promotions and the loads of the launch."""
        for promotion in ordering.promotions(self._launching()):
            self.device.enqueue(self.rank, promotion)
        for load in ordering.loads(self._launching()):
            self.device.enqueue(self.rank, load)
            if self.marks is not None:
                self.marks.loads.given(load.job)

    def compute(self) -> None:
        """Enqueue the forward pass of the launch, if it has one."""
        step = ordering.compute(self._launching())
        if step is not None:
            self.device.enqueue(self.rank, step)

    def wait_for_save(self) -> None:
        """Enqueue the cascades and the stores of the launch, and end it. (Nothing is waited for: the stores own what
        they read, or are fenced.)"""
        for cascade in ordering.cascades(self._launching()):
            self.device.enqueue(self.rank, cascade)
        for store in ordering.stores(self._launching()):
            self.device.enqueue(self.rank, store)
            if self.marks is not None:
                self.marks.stores.given(store.job)
        self._plan = None

    def get_finished(self) -> Failures:
        """Collect every job whose copies have run here, in the order in which they ran, with what of it failed."""
        return {job: self.device.collect(self.rank, job) for job in self.device.copied(self.rank)}

    def get_mark(self, direction: Direction) -> JobId:
        """Take in which copies of this direction have run here, and answer up to which job all have; NO_MARK: none.

        It is the same answer until another copy has run, so that it can be given again. For workers that report marks.
        """
        stream = self.mark_of(direction)
        for job in self.device.copied(self.rank):
            if job in stream.pending:
                stream.ran(job, self.device.collect(self.rank, job))
        return stream.mark

    def mark_of(self, direction: Direction) -> StreamMark:
        """What a worker that reports marks knows of one of its streams. ValueError for a direction that has no mark."""
        if self.marks is None:
            raise RuntimeError("this worker reports single jobs, and has no marks")
        if direction not in MARKED:
            raise ValueError(f"there is no mark of a {direction.lower()}; there is one of stores and one of loads")
        return self.marks.of(direction)

    def collect(self, jobs: Sequence[JobId]) -> Failures:
        """Collect just these. UnknownJob, and none collected, if one has not run here or was collected before."""
        remaining = list(self.device.copied(self.rank))
        for job in jobs:
            if job not in remaining:
                raise UnknownJob(f"worker {self.rank} has no uncollected copy of job {job}")
            remaining.remove(job)
        return {job: self.device.collect(self.rank, job) for job in jobs}

    def _launching(self) -> LaunchPlan:
        if self._plan is None:
            raise RuntimeError("handle_preemptions begins a launch; it was not called")
        return self._plan
