"""The copies of vLLM's OffloadingConnector with the CPU tier, simulated.

Stream order of its worker (vllm/v1/kv_offload/cpu/gpu_worker.py): one FIFO for stores and one for loads; each copy
waits for the compute submitted before it, and for the copy before it in its direction. Stores are submitted with the
next step, before its compute. A flush blocks the worker until the copies are done.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
from vllm.v1.kv_offload.base import OffloadingWorker, TransferResult, get_offload_block_hash
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec

from kvproof.obligations.books import Pool
from kvproof.obligations.workers import Direction, Workers
from kvproof.targets.vllm.driver import Copies, bytes_per_block
from kvproof.targets.vllm.private import capacity, chunks_of, free_chunks, read


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

    def _submit(self, job: int, direction: Direction, source: Any, destination: Any) -> None:
        pairs = zip(source.block_ids.tolist(), destination.block_ids.tolist(), strict=True)
        self.workers.submit(self.worker, job, direction, pairs, waits_for_compute=True)

    def get_finished(self) -> list[TransferResult]:
        return [TransferResult(copy.job, True) for copy in self.workers.collect(self.worker)]

    def wait(self, job_ids: Collection[int]) -> None:
        self.workers.flush(self.worker, job_ids)


class OffloadingCopies(Copies):
    """Where OffloadingConnector's worker is put, and how its host tier gets its size."""

    connector = "OffloadingConnector"

    def extra(self, host_blocks: int, workers: int) -> Mapping[str, Any]:
        alignment = CPUOffloadingSpec.BLOCK_SIZE_ALIGNMENT
        page = -(-bytes_per_block() * workers // alignment) * alignment
        return {"cpu_bytes_to_use": page * host_blocks, "offload_prompt_only": False}

    def simulate(self, rank: Any, workers: Workers, worker: int) -> None:
        rank.connector_worker.worker = SimulatedWorker(workers, worker)

    def host(self, connector: Any) -> tuple[Pool, list[tuple[int, bytes]]]:
        manager = read(read(connector, "connector_scheduler"), "manager")
        published, counts = [], [0] * capacity(manager)
        idle = list(free_chunks(manager))
        for key, chunk, count in chunks_of(manager):
            counts[chunk] += 1 if count < 0 else count
            if count >= 0:
                published.append((chunk, bytes(get_offload_block_hash(key))))
            if not count:
                idle.append(chunk)
        return Pool(tuple(counts), tuple(idle)), published

    def for_worker(self, metadata: Any) -> Any:
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
