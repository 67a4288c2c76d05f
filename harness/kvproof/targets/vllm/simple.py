"""vLLM's SimpleCPUOffloadConnector, eager and lazy.

Stream order of its worker (vllm/v1/simple_kv_offload/worker.py, copy_backend.py): one FIFO for stores and one for
loads; a store waits for the compute submitted before it, a load for nothing. A flush waits for all copies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvmodel.contract import STORE_MODES
from kvmodel.setting import Setting
from kvproof.obligations.watched import Pool, Unreadable
from kvproof.obligations.workers import Copy, Workers
from kvproof.targets.vllm import private
from kvproof.targets.vllm.engine import RELEASE, bytes_per_block
from kvproof.targets.vllm.release import importing
from kvproof.targets.vllm.target import ConnectorTarget

with importing(RELEASE):
    from vllm.v1.core.kv_cache_utils import get_block_hash
    from vllm.v1.simple_kv_offload.metadata import SimpleCPUOffloadWorkerMetadata
    from vllm.v1.simple_kv_offload.worker import SimpleCPUOffloadWorker

SUBMITS_EARLY = "launch_copy" in SimpleCPUOffloadWorker.wait_for_save.__code__.co_names
"""Whether this release submits its copies around the compute, and not when it is polled."""


@dataclass
class CopyEvent:
    """In place of the event that is recorded after a copy."""

    workers: Workers
    worker: int
    copy: Copy

    def query(self) -> bool:
        return self.workers.collected(self.worker, self.copy)

    def synchronize(self) -> None:
        self.workers.flush(self.worker, {self.copy.job})
        self.workers.collected(self.worker, self.copy)


@dataclass
class SimulatedBackend:
    """In place of the thread that copies: it submits the same copies to the simulated streams."""

    workers: Workers
    worker: int

    def launch_copy(
        self, sources: list[int], destinations: list[int], is_store: bool, event_idx: int, events_list: list[Any],
        wait_event: object = None,
    ) -> None:  # fmt: skip
        copy = self.workers.submit(
            self.worker,
            job_of(event_idx, is_store),
            "store" if is_store else "load",
            zip(sources, destinations, strict=True),
            waits_for_compute=is_store,
        )
        events_list.append((event_idx, CopyEvent(self.workers, self.worker, copy)))


class SimulatedHandler(SimpleCPUOffloadWorker):
    """vLLM's worker side, without the CUDA event by which a store waits for compute: the simulated streams know."""

    def __init__(self, original: SimpleCPUOffloadWorker, workers: Workers, worker: int) -> None:
        self.__dict__.update(vars(original))
        self._backend = SimulatedBackend(workers, worker)
        self._submitted: object = None

    def wait_for_save(self) -> None:
        if SUBMITS_EARLY:
            self._store(self._connector_metadata)

    def get_finished(self, finished_req_ids: set[str]) -> Any:
        metadata = private.read(self, "_connector_metadata")
        if SUBMITS_EARLY or metadata is None:
            return super().get_finished(finished_req_ids)
        if metadata.load_cpu_blocks:
            loads = (metadata.load_cpu_blocks, metadata.load_gpu_blocks)
            self._backend.launch_copy(*loads, False, metadata.load_event, self._load_events)
        self._store(metadata)
        self._connector_metadata = replace(metadata, load_cpu_blocks=[], store_gpu_blocks=[])
        try:
            return super().get_finished(finished_req_ids)
        finally:
            self._connector_metadata = metadata

    def _store(self, metadata: Any) -> None:
        """Submit a step's stores, once: 0.30.0 calls `wait_for_save` again when it is polled."""
        if metadata is not None and metadata.store_gpu_blocks and metadata is not self._submitted:
            self._submitted = metadata
            stores = (metadata.store_gpu_blocks, metadata.store_cpu_blocks)
            self._backend.launch_copy(*stores, True, metadata.store_event, self._store_events)


class Simple(ConnectorTarget):
    """The target `vllm-simple`; lazy where the contract says so."""

    disciplines = ("pinning",)
    copies_own_blocks = True
    store_modes = STORE_MODES
    connector = "RecordingSimpleCPUOffloadConnector"

    def host_blocks(self, setting: Setting) -> int:
        return setting.scope.host_blocks + 1

    def extra(self, setting: Setting) -> Mapping[str, Any]:
        capacity = bytes_per_block() * self.host_blocks(setting) * setting.scope.workers
        return {"cpu_bytes_to_use": capacity, "lazy_offload": setting.contract.lazy}

    def connected(self, setting: Setting) -> None:
        for worker, rank in enumerate(self.engine.ranks):
            original = private.read(rank, "worker_handler")
            for name in ("_backend", "_connector_metadata", "_load_events", "_store_events"):
                private.read(original, name)
            rank.worker_handler = SimulatedHandler(original, self.workers, worker)
        self.manager = private.read(self.engine.scheduler.connector, "scheduler_manager")
        self.pool = private.read(self.manager, "cpu_block_pool")
        wanted, there = self.host_blocks(setting), len(private.read(self.pool, "blocks"))
        if there != wanted:
            raise Unreadable(f"the CPU tier has {there} blocks, and should have {wanted}")

    def metadata_for_worker(self, metadata: Any) -> Any:
        return metadata

    def loads_of(self, metadata: Any) -> Mapping[int, Sequence[str]]:
        loads: Mapping[int, Sequence[str]] = metadata.load_event_to_reqs
        return {job_of(event, is_store=False): requests for event, requests in loads.items()}

    def blank_report(self) -> Any:
        return SimpleCPUOffloadWorkerMetadata(completed_store_events={})

    def completed_in(self, report: Any) -> dict[int, int]:
        completed: dict[int, int] = report.completed_store_events
        return completed

    def key_of(self, job: int) -> int | None:
        return None if job % 2 else job // 2

    def job_of_key(self, key: int) -> int:
        return job_of(key, is_store=True)

    def jobs_in_words(self, metadata: Any) -> list[str]:
        words = []
        for is_store, event, sources, destinations in (
            (True, metadata.store_event, metadata.store_gpu_blocks, metadata.store_cpu_blocks),
            (False, metadata.load_event, metadata.load_cpu_blocks, metadata.load_gpu_blocks),
        ):
            if sources:
                tiers = "dh" if is_store else "hd"
                pairs = zip(sources, destinations, strict=True)
                copies = ", ".join(f"{tiers[0]}{source} -> {tiers[1]}{target}" for source, target in pairs)
                words.append(f"job {job_of(event, is_store)}: {'store' if is_store else 'load'} {copies}")
        return words + (["flush all"] if metadata.need_flush else [])

    def host(self) -> tuple[Pool, tuple[tuple[int, tuple[int, ...]], ...]]:
        published = [(block, self.keys[bytes(get_block_hash(key))]) for block, key in private.hashes(self.pool)]
        return private.pool(self.pool), tuple(published)


def job_of(event: int, is_store: bool) -> int:
    """One number for a transfer event: vLLM counts those of stores and of loads apart."""
    return 2 * event + (not is_store)
