"""vLLM's connectors, each with a notebook: what was looked up and admitted, exactly as the scheduler said.

vLLM loads these classes itself, by `kv_connector_module_path`. They change nothing.
"""

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import OffloadingConnector
from vllm.distributed.kv_transfer.kv_connector.v1.simple_cpu_offload_connector import SimpleCPUOffloadConnector


class Recording:
    """The notebook. told: (what, request id, details), oldest first; whoever reads it empties it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told: list[tuple[str, str, Any]] = []

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int | None, bool]:
        answer: tuple[int | None, bool] = super().get_num_new_matched_tokens(request, num_computed_tokens)  # type: ignore[misc]
        self.told.append(("lookup", request.request_id, (num_computed_tokens, answer[0])))
        return answer

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        super().update_state_after_alloc(request, blocks, num_external_tokens)  # type: ignore[misc]
        self.told.append(("admit", request.request_id, (blocks.get_block_ids(), num_external_tokens)))


class RecordingOffloadingConnector(Recording, OffloadingConnector):
    """OffloadingConnector, recorded."""


class RecordingSimpleCPUOffloadConnector(Recording, SimpleCPUOffloadConnector):
    """SimpleCPUOffloadConnector, recorded."""
