"""vLLM's OffloadingConnector with the CPU tier.

Stream order of its worker (vllm/v1/kv_offload/cpu/gpu_worker.py): one FIFO for stores and one for loads; each copy
waits for the compute submitted before it, and for the copy before it in its direction. Stores are submitted with the
next step, before its compute. A flush blocks the worker until the copies are done.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvmodel.setting import Setting
from kvproof.obligations.watched import Pool, Unreadable
from kvproof.obligations.workers import Workers
from kvproof.targets.vllm import private
from kvproof.targets.vllm.engine import RELEASE, bytes_per_block
from kvproof.targets.vllm.release import importing, since
from kvproof.targets.vllm.target import ConnectorTarget

since((0, 25), RELEASE)  # 0.24's workers copy by handlers of another kind

with importing(RELEASE):
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
    from vllm.v1.kv_offload.base import OffloadingWorker, TransferResult, get_offload_block_hash
    from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec


class SimulatedWorker(OffloadingWorker):
    """In place of the worker that copies on a GPU: it submits the same copies to the simulated streams."""

    def __init__(self, workers: Workers, worker: int) -> None:
        self.workers = workers
        self.worker = worker

    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        self._submit(job_id, "store", src_spec, dst_spec)
        return True

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        self._submit(job_id, "load", src_spec, dst_spec)
        return True

    def _submit(self, job: int, direction: Any, source: Any, destination: Any) -> None:
        pairs = zip(source.block_ids.tolist(), destination.block_ids.tolist(), strict=True)
        self.workers.submit(self.worker, job, direction, pairs, waits_for_compute=True)

    def get_finished(self) -> list[TransferResult]:
        return [TransferResult(copy.job, True) for copy in self.workers.collect(self.worker)]

    def wait(self, job_ids: Collection[int]) -> None:
        self.workers.flush(self.worker, job_ids)


class Offloading(ConnectorTarget):
    """The target `vllm-offloading`."""

    disciplines = ("fencing",)
    copies_own_blocks = False
    connector = "RecordingOffloadingConnector"

    def host_blocks(self, setting: Setting) -> int:
        return setting.scope.host_blocks

    def extra(self, setting: Setting) -> Mapping[str, Any]:
        scope, alignment = setting.scope, CPUOffloadingSpec.BLOCK_SIZE_ALIGNMENT
        page = -(-bytes_per_block() * scope.workers // alignment) * alignment
        return {"cpu_bytes_to_use": page * scope.host_blocks, "offload_prompt_only": False}

    def connected(self, setting: Setting) -> None:
        for worker, rank in enumerate(self.engine.ranks):
            private.read(rank, "connector_worker").worker = SimulatedWorker(self.workers, worker)
        scheduler = private.read(self.engine.scheduler.connector, "connector_scheduler")
        self.manager = private.read(scheduler, "manager")
        wanted, there = setting.scope.host_blocks, private.capacity(self.manager)
        if there != wanted:
            raise Unreadable(f"the CPU tier has {there} chunks, and should have {wanted}")

    def metadata_for_worker(self, metadata: Any) -> Any:
        """vLLM's worker takes jobs out of it."""
        return replace(metadata, load_jobs=dict(metadata.load_jobs), store_jobs=dict(metadata.store_jobs))

    def loads_of(self, metadata: Any) -> Mapping[int, Sequence[str]]:
        return {job: (transfer.req_id,) for job, transfer in metadata.load_jobs.items()}

    def blank_report(self) -> Any:
        return OffloadingWorkerMetadata()

    def completed_in(self, report: Any) -> dict[int, int]:
        completed: dict[int, int] = report.completed_jobs
        return completed

    def key_of(self, job: int) -> int | None:
        return job

    def job_of_key(self, key: int) -> int:
        return key

    def jobs_in_words(self, metadata: Any) -> list[str]:
        words = []
        for direction, jobs, tiers in (("store", metadata.store_jobs, "dh"), ("load", metadata.load_jobs, "hd")):
            for job, transfer in jobs.items():
                pairs = zip(transfer.src_spec.block_ids, transfer.dst_spec.block_ids, strict=True)
                copies = ", ".join(f"{tiers[0]}{source} -> {tiers[1]}{target}" for source, target in pairs)
                words.append(f"job {job}: {direction} {copies}")
        flush = sorted(metadata.jobs_to_flush or ())
        return words + ([f"flush {', '.join(map(str, flush))}"] if flush else [])

    def host(self) -> tuple[Pool, tuple[tuple[int, tuple[int, ...]], ...]]:
        published, counts = [], [0] * self.scope.host_blocks
        idle = list(private.free_chunks(self.manager))
        for key, chunk, count in private.chunks_of(self.manager):
            counts[chunk] += 1 if count < 0 else count
            if count >= 0:
                published.append((chunk, self.keys[bytes(get_offload_block_hash(key))]))
            if not count:
                idle.append(chunk)
        return Pool(tuple(counts), tuple(idle)), tuple(published)
