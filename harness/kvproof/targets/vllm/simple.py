"""The target `vllm-simple`: vLLM's SimpleCPUOffloadConnector, eager and lazy."""

from typing import Any

from kvmodel.contract import STORE_MODES
from kvmodel.setting import Setting
from kvproof.targets.vllm import private
from kvproof.targets.vllm.engine import RELEASE
from kvproof.targets.vllm.release import importing
from kvproof.targets.vllm.target import ConnectorTarget, driven_alone

with importing(RELEASE):
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
