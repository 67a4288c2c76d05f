"""vLLM's Scheduler, driven through its public methods in the order in which vLLM's engine core calls them.

Depth 1: schedule, execute on every worker, handle the output, and so on. Depth 2 is asynchronous scheduling: a step is
scheduled before the output of the one before it is handled. The worker side of the connector is vLLM's own too; only
the copies are simulated, with the stream order of vLLM's workers. Nothing is patched, and nothing here judges.

vLLM goes through sets of request ids. With PYTHONHASHSEED=0 they have the order in which kvproof saw them.
"""

import json
import logging
import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from kvproof.obligations.books import Books, Pool
from kvproof.obligations.workers import Share, Workers
from kvproof.targets.vllm.private import pool
from kvproof.targets.vllm.reports import Form, Reports

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

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
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, KVCacheTensor
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

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_hidden_layers": 1,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "torch_dtype": "float16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
"""A small model. It has no weights: nothing is computed."""

STEPS_WITHOUT_END = 200
"""How often a drain steps, with every copy run and reported before, and no request ends, until it gives up."""


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
def built(
    connector: str,
    extra: tuple[tuple[str, Any], ...],
    device_blocks: int,
    workers: int,
    depth: int,
    module: str | None = None,
) -> Built:
    """vLLM's configuration for one connector. extra: its options; module: where it is, if vLLM does not know it."""
    blocks = device_blocks + 1  # vLLM keeps block 0 for nobody
    cache_config = CacheConfig(block_size=TOKENS_PER_BLOCK, enable_prefix_caching=True)
    cache_config.num_gpu_blocks = blocks
    config = VllmConfig(
        model_config=small_model(),
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
            kv_connector_module_path=module,
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


def small_model() -> ModelConfig:
    """vLLM reads a model's description from a folder, and that once."""
    with TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
        return ModelConfig(model=folder, skip_tokenizer_init=True, dtype="float16", max_model_len=LONGEST, seed=0)


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


class Copies(Form):
    """How one of vLLM's offload connectors is set up, how its workers report, and where the simulated copies take the
    place of the real ones.

    connector  its name; unused: host blocks that it keeps for nobody (count)
    """

    connector: str
    unused = 0

    @abstractmethod
    def extra(self, host_blocks: int, workers: int) -> Mapping[str, Any]:
        """vLLM's `kv_connector_extra_config`, for a host tier of so many blocks."""

    @abstractmethod
    def simulate(self, rank: Any, workers: Workers, worker: int) -> None:
        """Have one worker's side of the connector submit its copies to the simulated streams."""

    @abstractmethod
    def host(self, connector: Any) -> tuple[Pool, list[tuple[int, bytes]]]:
        """The books of the host tier, and (block, hash) of everything that it would serve. Raises Unreadable."""

    @abstractmethod
    def for_worker(self, metadata: Any) -> Any:
        """The connector's metadata as one worker's process gets it."""


class Prefixes:
    """Names of token sequences: equal prefixes have equal names, from 1."""

    def __init__(self) -> None:
        self.names: dict[tuple[int, ...], int] = {}

    def of(self, tokens: tuple[int, ...]) -> list[int]:
        """The name of the prefix up to each token."""
        return [self.names.setdefault(tokens[: end + 1], len(self.names) + 1) for end in range(len(tokens))]


class Vllm:
    """One Scheduler with its workers. `requests` has every request that was submitted, by number; `live` those of which
    it is not known yet that they have ended."""

    def __init__(self, made: Built, copies: Copies, workers: Workers, depth: int) -> None:
        self.copies = copies
        self.depth = depth
        self.workers = workers
        self.built = made
        self.scheduler = (AsyncScheduler if depth > 1 else Scheduler)(
            vllm_config=made.config,
            kv_cache_config=made.cache,
            structured_output_manager=made.grammars,
            block_size=TOKENS_PER_BLOCK,
            log_stats=False,
        )
        self.ranks = [
            KVConnectorFactory.create_connector(made.config, KVConnectorRole.WORKER, made.cache) for _ in workers.ranks
        ]
        for worker, rank in enumerate(self.ranks):
            copies.simulate(rank, workers, worker)
        self.aggregator = KVOutputAggregator.from_connector(self.scheduler.connector, len(self.ranks))
        self.reports = Reports(copies, len(self.ranks))
        self.names = Prefixes()
        self.requests: dict[int, Request] = {}
        self.live: dict[int, Request] = {}
        self.prefixes: dict[int, list[int]] = {}
        self.named: dict[bytes, tuple[int, ...]] = {}
        self.naming: dict[int, int] = {}
        self.awaited: deque[Launched] = deque()

    @classmethod
    def of(cls, copies: Copies, device_blocks: int, host_blocks: int, workers: int, depth: int) -> Self:
        """With so many blocks that requests can have, and so many workers."""
        extra = tuple(sorted(copies.extra(host_blocks, workers).items()))
        ranks = Workers(workers, device_blocks + 1, host_blocks + copies.unused, TOKENS_PER_BLOCK)
        return cls(built(copies.connector, extra, device_blocks, workers, depth), copies, ranks, depth)

    # The client.

    def submit(self, number: int, prompt: str, decoded: int) -> None:
        """A request whose prompt has one block for each symbol, and which decodes so many blocks."""
        tokens = [10 * ord(symbol) % 997 + offset for symbol in prompt for offset in range(TOKENS_PER_BLOCK)]
        outputs = TOKENS_PER_BLOCK * decoded + 1
        request = Request(
            request_id=str(number),
            prompt_token_ids=tokens,
            sampling_params=SamplingParams(max_tokens=outputs, ignore_eos=True, temperature=0.0),
            pooling_params=None,
            arrival_time=float(number),
            block_hasher=self.built.hasher,
        )
        self.requests[number] = self.live[number] = request
        self.naming[number] = 0
        self.prefixes[number] = self.names.of((*tokens, *map(sampled, range(outputs + self.depth))))
        self.scheduler.add_request(request)

    def abort(self, number: int) -> None:
        self.scheduler.finish_requests(str(number), RequestStatus.FINISHED_ABORTED)

    def reset(self, requests: str, tiers: str) -> bool:
        """requests: `preempt` those that run, or `keep` them; tiers: all, or the device or the host alone. Raises
        RuntimeError where vLLM refuses, while blocks are in use."""
        if tiers == "host":
            return self.scheduler.reset_connector_cache()
        return self.scheduler.reset_prefix_cache(
            reset_running_requests=requests == "preempt", reset_connector=tiers == "all"
        )

    def reset_for(self, meaning: str, requests: str, tiers: str, strict: bool = False) -> bool:
        """A reset for a client that has changed the weights (`invalidate`) or not (`evict`). What was computed before
        is old once it has answered True; read strictly when it has answered False too, but for requests that run."""
        answer = self.reset(requests, tiers)
        if meaning == "invalidate" and tiers != "device" and (answer or strict):
            self.workers.weights_change(() if answer else [number for number, _ in self.holders()])
        return answer

    def unfinished(self) -> tuple[int, ...]:
        """Requests that have not ended."""
        for number in [number for number, request in self.live.items() if request.is_finished()]:
            del self.live[number]
        return tuple(self.live)

    def holders(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Requests that the scheduler knows, with their device blocks; those too that ended and still hold some."""
        for identifier in self.scheduler.requests:
            (blocks,) = self.scheduler.kv_cache_manager.get_block_ids(identifier)
            if blocks:
                yield int(identifier), tuple(blocks)

    def host(self) -> tuple[Pool, list[tuple[int, bytes]]]:
        """The books of the host tier, and (block, hash) of everything that it would serve. Raises Unreadable."""
        return self.copies.host(self.scheduler.connector)

    def books(self) -> Books:
        """What vLLM's own books say. Raises Unreadable."""
        self._name_hashes()
        host, published = self.host()
        return Books(
            device=pool(self.scheduler.kv_cache_manager.block_pool),
            host=host,
            tables=tuple(self.holders()),
            unfinished=self.unfinished(),
            busy=self.scheduler.has_requests(),
            published=tuple((block, self.named[key]) for block, key in published),
        )

    def _name_hashes(self) -> None:
        """Which prefixes the hashes stand for that vLLM has given to blocks since the last call. `naming` has how many
        are named already, of each request that may still get some."""
        for number, done in list(self.naming.items()):
            request = self.requests[number]
            known = request.block_hashes
            for index in range(done, len(known)):
                start = index * TOKENS_PER_BLOCK
                names = self.prefixes[number][start : start + TOKENS_PER_BLOCK]
                self.named.setdefault(bytes(known[index]), tuple(names))
            if request.is_finished():
                del self.naming[number]
            else:
                self.naming[number] = len(known)

    # One step.

    def schedule(self) -> Any:
        """Schedule, and execute on every worker."""
        for launched in self.awaited:
            self._poll(launched)
        scheduled = self.scheduler.schedule()
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
            metadata = self.copies.for_worker(scheduled.kv_connector_metadata)
            self._execute(worker, rank, metadata, tuple(shares))
        self.reports.launched(scheduled.kv_connector_metadata)
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

    def handle_output(self) -> None:
        """Aggregate what the workers say of the oldest step, and hand it to the scheduler."""
        launched = self.awaited.popleft()
        output = self.aggregator.aggregate(self._poll(launched))
        self.scheduler.update_from_output(launched.scheduled, output)

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

    # Until nothing is left.

    def drain(self, kept: Callable[[], bool] = lambda: True) -> None:
        """Copies run and are reported, steps are taken, until the engine rests or no request has ended for long.

        kept  what should hold after each of these; where it does not, the drain ends
        """
        waiting, since = -1, 0
        while since <= STEPS_WITHOUT_END:
            if not all(kept() for _ in self._running()):
                return
            if len(self.awaited) < self.depth and self.scheduler.has_requests():
                self.schedule()
            elif self.awaited:
                self.handle_output()
            else:
                return
            if not kept():
                return
            since = 0 if len(self.unfinished()) != waiting else since + 1
            waiting = len(self.unfinished())

    def _running(self) -> Iterator[None]:
        """Run every operation that can, one at a time."""
        for worker, rank in enumerate(self.workers.ranks):
            for stream, operations in (("compute", rank.compute), ("store", rank.store), ("load", rank.load)):
                while operations:
                    self.workers.run(worker, stream)
                    yield

    def rests(self) -> bool:
        """Whether vLLM's engine core would take no further step."""
        return not self.awaited and not self.scheduler.has_requests()


def sampled(position: int) -> int:
    """The token that every request samples at this place of its output."""
    return 500 + position
