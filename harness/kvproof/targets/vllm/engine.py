"""vLLM's Scheduler, driven through its public methods in the order in which vLLM's engine core calls them.

Depth 1: schedule, execute on every worker, handle the output, and so on. Depth 2 is asynchronous scheduling: a step is
scheduled before the output of the one before it is handled. Aborts may come at any time; everything else while less
steps are awaited than there may be. The worker side of the connector is vLLM's own too; only the copies are simulated.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvmodel.setting import Setting
from kvproof.obligations.workers import Share, Workers
from kvproof.targets.vllm.private import unlike
from kvproof.targets.vllm.release import importing, installed
from kvproof.targets.vllm.reports import Reports

RELEASE = installed()  # before vllm is imported

with importing(RELEASE):
    import torch
    from vllm.config import (
        CacheConfig,
        DeviceConfig,
        KVTransferConfig,
        ModelConfig,
        ParallelConfig,
        SchedulerConfig,
        VllmConfig,
    )
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.distributed.kv_transfer.kv_connector.utils import KVOutputAggregator
    from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
    from vllm.sampling_params import SamplingParams
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import (
        FullAttentionSpec,
        KVCacheConfig,
        KVCacheGroupSpec,
        KVCacheTensor,
    )
    from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
    from vllm.v1.request import Request, RequestStatus
    from vllm.v1.structured_output import StructuredOutputManager

logging.getLogger("vllm").setLevel(logging.ERROR)
"""Each of the many engines that are opened would warn of the same things again."""

TENSORS_HAVE_STRIDES = hasattr(KVCacheTensor, "__dataclass_fields__") and "layers" in KVCacheTensor.__dataclass_fields__
"""How this release describes the tensors of the KV cache."""

LOADS_AFTER_COMPUTE = "has_sync_kv_loads" in SchedulerOutput.__dataclass_fields__
"""Whether a step's asynchronous loads are submitted after its compute, and so wait for that too, in this release."""

TOKENS_PER_BLOCK = 2
"""The smallest at which a block can be half written."""

TOKENS_PER_STEP = 6
"""A step's budget: longer prompts, and several at once, are computed in chunks."""

LONGEST = 256
"""Tokens of the longest request."""

LAYER = "layer"


@dataclass(frozen=True)
class Built:
    """What is made once for all engines of one size."""

    config: VllmConfig
    cache: KVCacheConfig
    grammars: StructuredOutputManager
    hasher: Callable[[Request], Any]


def spec() -> FullAttentionSpec:
    return FullAttentionSpec(block_size=TOKENS_PER_BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)


def bytes_per_block() -> int:
    """Bytes of one block on one worker."""
    return int(spec().page_size_bytes)


@cache
def built(connector: str, extra: tuple[tuple[str, Any], ...], device_blocks: int, workers: int, depth: int) -> Built:
    """vLLM's configuration for one connector. Raises Unreadable where vLLM takes no such configuration."""
    try:
        return _built(connector, extra, device_blocks, workers, depth)
    except Exception as error:
        raise unlike(RELEASE, error) from error


def _built(connector: str, extra: tuple[tuple[str, Any], ...], device_blocks: int, workers: int, depth: int) -> Built:
    """One device block more than asked for: vLLM's null block."""
    blocks = device_blocks + 1
    model = ModelConfig(
        model=str(Path(__file__).with_name("model")),
        skip_tokenizer_init=True,
        dtype="float16",
        max_model_len=LONGEST,
        seed=0,
    )
    cache_config = CacheConfig(block_size=TOKENS_PER_BLOCK, enable_prefix_caching=True)
    cache_config.num_gpu_blocks = blocks
    config = VllmConfig(
        model_config=model,
        cache_config=cache_config,
        scheduler_config=SchedulerConfig(
            max_num_seqs=4,
            max_num_batched_tokens=TOKENS_PER_STEP,
            max_model_len=LONGEST,
            is_encoder_decoder=False,
            enable_chunked_prefill=True,
            async_scheduling=depth > 1,
        ),
        parallel_config=ParallelConfig(tensor_parallel_size=workers),
        kv_transfer_config=KVTransferConfig(
            kv_connector=connector,
            kv_role="kv_both",
            kv_connector_module_path="kvproof.targets.vllm.recording",
            kv_connector_extra_config=dict(extra),
        ),
        device_config=DeviceConfig("cpu"),
    )
    config.scheduler_config.async_scheduling = depth > 1  # the CPU platform turns it off, which GPUs have on
    size = bytes_per_block() * blocks
    if TENSORS_HAVE_STRIDES:
        tensor = KVCacheTensor(size=size, layers=[LAYER], layer_stride=size, block_stride=bytes_per_block())
    else:
        tensor = KVCacheTensor(size=size, shared_by=[LAYER])
    layout = KVCacheConfig(
        num_blocks=blocks, kv_cache_tensors=[tensor], kv_cache_groups=[KVCacheGroupSpec([LAYER], spec())]
    )
    init_none_hash(sha256)
    return Built(config, layout, StructuredOutputManager(config), get_request_block_hasher(TOKENS_PER_BLOCK, sha256))


@dataclass
class Launched:
    """A step whose output is awaited.

    scheduled  what the scheduler said; sampling: the token of each request that gets one
    computes   how many computes each worker has been given with it
    polled     what each worker said of it, once it was asked
    """

    scheduled: Any
    sampling: Mapping[str, int]
    computes: int
    polled: list[ModelRunnerOutput | None] | None = None


class Prefixes:
    """Names of token sequences: equal prefixes have equal names, from 1."""

    def __init__(self) -> None:
        self.names: dict[tuple[int, ...], int] = {}

    def of(self, tokens: tuple[int, ...]) -> list[int]:
        """The name of the prefix up to each token."""
        return [self.names.setdefault(tokens[: end + 1], len(self.names) + 1) for end in range(len(tokens))]


class Engine:
    """One Scheduler with its workers. `requests` has every request that was submitted, by number; `live` those of which
    it is not known yet that they have ended."""

    def __init__(
        self, connector: str, extra: Mapping[str, Any], setting: Setting, workers: Workers, reports: Reports
    ) -> None:
        scope = self.scope = setting.scope
        self.depth = setting.contract.depth
        self.workers = workers
        self.reports = reports
        self.built = built(connector, tuple(sorted(extra.items())), scope.device_blocks, scope.workers, self.depth)
        self.scheduler = (AsyncScheduler if self.depth > 1 else Scheduler)(
            vllm_config=self.built.config,
            kv_cache_config=self.built.cache,
            structured_output_manager=self.built.grammars,
            block_size=TOKENS_PER_BLOCK,
            log_stats=False,
        )
        self.ranks = [
            KVConnectorFactory.create_connector(self.built.config, KVConnectorRole.WORKER, self.built.cache)
            for _ in range(scope.workers)
        ]
        self.aggregator = KVOutputAggregator.from_connector(self.scheduler.connector, scope.workers)
        self.names = Prefixes()
        self.requests: dict[int, Request] = {}
        self.live: dict[int, Request] = {}
        self.prefixes: dict[int, list[int]] = {}
        self.awaited: deque[Launched] = deque()

    # The client.

    def submit(self, number: int) -> None:
        """A request whose prompt has one block for each symbol, and which decodes as many blocks as the scope says."""
        prompt = self.scope.prompts[number]
        tokens = [10 * ord(symbol) % 997 + offset for symbol in prompt for offset in range(TOKENS_PER_BLOCK)]
        blocks = len(self.scope.decoded[number]) if self.scope.decoded else self.scope.decode
        decoded = TOKENS_PER_BLOCK * blocks + 1
        request = Request(
            request_id=str(number),
            prompt_token_ids=tokens,
            sampling_params=SamplingParams(max_tokens=decoded, ignore_eos=True, temperature=0.0),
            pooling_params=None,
            arrival_time=float(number),
            block_hasher=self.built.hasher,
        )
        self.requests[number] = self.live[number] = request
        self.prefixes[number] = self.names.of((*tokens, *map(sampled, range(decoded + self.depth))))
        self.scheduler.add_request(request)

    def abort(self, number: int) -> None:
        self.scheduler.finish_requests(str(number), RequestStatus.FINISHED_ABORTED)

    def unfinished(self) -> tuple[int, ...]:
        for number in [number for number, request in self.live.items() if request.is_finished()]:
            del self.live[number]
        return tuple(self.live)

    def holders(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Requests that the scheduler knows, with their device blocks; those too that ended and still hold some."""
        for identifier in self.scheduler.requests:
            (blocks,) = self.scheduler.kv_cache_manager.get_block_ids(identifier)
            if blocks:
                yield int(identifier), tuple(blocks)

    # One step.

    def schedule(self, metadata_of: Callable[[Any], Any]) -> Any:
        """Schedule, and execute on every worker. metadata_of: a copy of the connector's metadata, for one worker."""
        for launched in self.awaited:
            self._poll(launched)
        scheduled = self.scheduler.schedule()
        self.reports.launched(scheduled.kv_connector_metadata)
        shares, sampling = [], {}
        for identifier, count in scheduled.num_scheduled_tokens.items():
            request = self.scheduler.requests[identifier]
            (table,) = self.scheduler.kv_cache_manager.get_block_ids(identifier)
            end = request.num_computed_tokens
            number = int(identifier)
            shares.append(Share(number, tuple(table), end - count, end, self.prefixes[number]))
            if not request.is_prefill_chunk:
                sampling[identifier] = sampled(end - request.num_prompt_tokens)
        for worker, rank in enumerate(self.ranks):
            self._execute(worker, rank, metadata_of(scheduled.kv_connector_metadata), tuple(shares))
        self.awaited.append(Launched(scheduled, sampling, self.workers.ranks[0].submitted))
        return scheduled

    def _execute(self, worker: int, rank: Any, metadata: Any, shares: tuple[Share, ...]) -> None:
        """What vLLM's model runner does with the worker side of the connector, in its order."""
        rank.handle_preemptions(metadata)
        rank.bind_connector_metadata(metadata)
        if not LOADS_AFTER_COMPUTE:
            rank.start_load_kv(None)
        if shares:
            self.workers.launch(worker, shares)
        if LOADS_AFTER_COMPUTE:
            rank.start_load_kv(None)
        rank.wait_for_save()

    def can_be_handled(self) -> bool:
        """Whether every worker has computed the oldest step that is awaited."""
        return bool(self.awaited) and all(rank.ran >= self.awaited[0].computes for rank in self.workers.ranks)

    def handle_output(self) -> Any:
        """Aggregate what the workers say of the oldest step, and hand it to the scheduler."""
        launched = self.awaited.popleft()
        output = self.aggregator.aggregate(self._poll(launched))
        return self.scheduler.update_from_output(launched.scheduled, output)

    def _poll(self, launched: Launched) -> list[ModelRunnerOutput | None]:
        """Ask every worker once what has become of its copies: before it is given another step, at the latest."""
        if launched.polled is None:
            launched.polled = [self._polled(worker, launched) for worker in range(len(self.ranks))]
        return launched.polled

    def _polled(self, worker: int, launched: Launched) -> ModelRunnerOutput:
        rank, scheduled, sampling = self.ranks[worker], launched.scheduled, launched.sampling
        sent, received = rank.get_finished(scheduled.finished_req_ids)
        received, report = self.reports.arrived(worker, received or set(), rank.build_connector_worker_meta())
        told = KVConnectorOutput(
            finished_sending=sent or None, finished_recving=received or None, kv_connector_worker_meta=report
        )
        rank.clear_connector_metadata()
        computed = list(scheduled.num_scheduled_tokens)
        return ModelRunnerOutput(
            req_ids=computed,
            req_id_to_index={identifier: index for index, identifier in enumerate(computed)},
            sampled_token_ids=[[sampling[i]] if i in sampling else [] for i in computed],
            kv_connector_output=told,
        )


def sampled(position: int) -> int:
    """The token that every request samples at this place of its output."""
    return 500 + position
