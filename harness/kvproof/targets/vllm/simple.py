"""The target `vllm-simple`: vLLM's SimpleCPUOffloadConnector, eager and lazy."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvmodel.contract import STORE_MODES
from kvmodel.setting import Setting
from kvproof.targets.vllm import private
from kvproof.targets.vllm.engine import RELEASE
from kvproof.targets.vllm.release import importing
from kvproof.targets.vllm.target import ConnectorTarget, driven_alone

with importing(RELEASE):
    from vllm.v1.simple_kv_offload.metadata import SimpleCPUOffloadWorkerMetadata

    from kvproof.targets.vllm import simple_copies
    from kvproof.targets.vllm.simple_copies import SimpleCopies, job_of


class Simple(ConnectorTarget):
    """The target `vllm-simple`; lazy where the contract says so."""

    disciplines = ("pinning",)
    copies_own_blocks = True
    store_modes = STORE_MODES
    connector = "RecordingSimpleCPUOffloadConnector"
    alone = driven_alone("SimpleCopies({store_mode})", simple_copies)

    def copies(self, setting: Setting) -> SimpleCopies:
        return SimpleCopies(setting.contract.store_mode)

    def connected(self) -> None:
        for rank in self.engine.ranks:
            for name in ("_connector_metadata", "_load_events", "_store_events"):
                private.read(rank.worker_handler, name)

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
