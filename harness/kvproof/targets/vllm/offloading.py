"""vLLM's OffloadingConnector with the CPU tier.

Stream order of its worker (vllm/v1/kv_offload/cpu/gpu_worker.py): one FIFO for stores and one for loads; each copy
waits for the compute submitted before it, and for the copy before it in its direction. Stores are submitted with the
next step, before its compute. A flush blocks the worker until the copies are done.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from kvmodel.setting import Setting
from kvproof.obligations.watched import Books, Pool, Unreadable
from kvproof.obligations.workers import Workers
from kvproof.targets.command import VERBS, Command, request_name
from kvproof.targets.outcome import Answer, Outcome, Refused
from kvproof.targets.target import StepTarget
from kvproof.targets.vllm import private
from kvproof.targets.vllm.engine import TOKENS_PER_BLOCK, Engine, bytes_per_block

from vllm.v1.kv_offload.base import (  # isort: skip
    OffloadingWorker,
    TransferResult,
    get_offload_block_hash,
)
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec  # isort: skip

FAILED_TO_RESET = "Failed to reset KV cache"
"""How the text begins of the exception by which vLLM's scheduler refuses a reset while a request is loading."""


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


class Offloading(StepTarget):
    """The target `vllm-offloading`."""

    disciplines = ("fencing",)
    watched = True
    copies_own_blocks = False
    verbs = frozenset({"submit", "schedule", "run", "handle_output", "abort", "reset", "drain"})

    def __init__(self, setting: Setting) -> None:
        scope = self.scope = setting.scope
        self.workers = Workers(scope.workers, scope.device_blocks + 1, scope.host_blocks, TOKENS_PER_BLOCK)
        alignment = CPUOffloadingSpec.BLOCK_SIZE_ALIGNMENT
        page = -(-bytes_per_block() * scope.workers // alignment) * alignment
        extra = {"cpu_bytes_to_use": page * scope.host_blocks, "offload_prompt_only": False}
        self.engine = Engine("RecordingOffloadingConnector", extra, scope, self.workers)
        for worker, rank in enumerate(self.engine.ranks):
            private.read(rank, "connector_worker").worker = SimulatedWorker(self.workers, worker)
        scheduler = private.read(self.engine.scheduler.connector, "connector_scheduler")
        self.manager = private.read(scheduler, "manager")
        if private.capacity(self.manager) != scope.host_blocks:
            raise Unreadable(f"the CPU tier has {private.capacity(self.manager)} chunks, not {scope.host_blocks}")
        self.keys: dict[bytes, tuple[int, ...]] = {}
        self.resets_left = scope.resets

    @classmethod
    def prepare(cls, setting: Setting) -> None:
        """vLLM looks at the model in a process of its own, when its configuration is made."""
        cls(setting).close()

    # What may be given.

    def enabled(self) -> list[Command]:
        engine = self.engine
        runs = [
            Command("run", (worker, stream))
            for worker in range(self.scope.workers)
            for stream in ("compute", "store", "load")
            if self.workers.runnable(worker, stream)
        ]
        aborts = [Command("abort", (number,)) for number in engine.unfinished()] if self.scope.aborts else []
        if engine.awaited is not None:
            computed = not any(rank.compute for rank in self.workers.ranks)
            return [*([Command("handle_output")] if computed else []), *runs, *aborts]
        submits = [
            Command("submit", (number,)) for number in range(len(self.scope.prompts)) if number not in engine.requests
        ]
        steps = [Command("schedule")] if engine.scheduler.has_requests() else []
        return [*steps, *runs, *submits, *aborts, *(self._resets() if self.resets_left else [])]

    def _resets(self) -> list[Command]:
        every = [
            Command("reset", (meaning, requests))
            for meaning in self.scope.meanings
            for requests in (("preempt", "keep") if self.scope.survivors else ("preempt",))
        ]
        if len(VERBS["reset"]) > 2 and "evict" in self.scope.meanings:  # one tier alone
            every += [Command("reset", ("evict", requests, "device")) for requests in ("preempt", "keep")]
            every.append(Command("reset", ("evict", "keep", "host")))
        return every

    # The verbs.

    def submit(self, request: int) -> Outcome:
        self.engine.submit(request)
        return Answer()

    def abort(self, request: int) -> Outcome:
        self.engine.abort(request)
        return Answer()

    def run(self, worker: int, stream: str) -> Outcome:
        self.workers.run(worker, stream)
        return Answer()

    def reset(self, meaning: str, requests: str, tiers: str = "all") -> Outcome:
        """`preempt` is vLLM's reset_running_requests, `all` its reset_connector; the host alone is
        reset_connector_cache."""
        self.resets_left -= 1
        scheduler = self.engine.scheduler
        if tiers == "host":
            return Answer(scheduler.reset_connector_cache())
        try:
            return Answer(scheduler.reset_prefix_cache(requests == "preempt", tiers == "all"))
        except RuntimeError as error:
            if not str(error).startswith(FAILED_TO_RESET):
                raise
            return Refused(f"RuntimeError: {error}")

    def schedule(self) -> Outcome:
        scheduled = self.engine.schedule(copied_metadata)
        return Answer("; ".join(self._words(scheduled)))

    def handle_output(self) -> Outcome:
        before = set(self.engine.unfinished())
        self.engine.handle_output()
        ended = sorted(before - set(self.engine.unfinished()))
        return Answer(", ".join(f"{request_name(number)} ends" for number in ended))

    def _words(self, scheduled: Any) -> list[str]:
        """What one scheduling call did, from what the connector was told and from its metadata."""
        words = []
        connector = self.engine.scheduler.connector
        for what, identifier, details in connector.told:
            who = request_name(int(identifier))
            if what == "lookup" and details[1] is None:
                words.append(f"defer {who}")
            elif what == "admit":
                (blocks,), external = details
                table = " ".join(f"d{block}" for block in blocks)
                words.append(f"admit {who}: {table}" + (f", {external} tokens to load" if external else ""))
        connector.told.clear()
        words += [f"preempt {request_name(int(i))}" for i in sorted(scheduled.preempted_req_ids or ())]
        words += [
            f"compute {request_name(int(identifier))} {count}"
            for identifier, count in scheduled.num_scheduled_tokens.items()
        ]
        return words + self._jobs_in_words(scheduled.kv_connector_metadata)

    def _jobs_in_words(self, metadata: Any) -> list[str]:
        words = []
        for direction, jobs, tiers in (("store", metadata.store_jobs, "dh"), ("load", metadata.load_jobs, "hd")):
            for job, transfer in jobs.items():
                pairs = zip(transfer.src_spec.block_ids, transfer.dst_spec.block_ids, strict=True)
                copies = ", ".join(f"{tiers[0]}{source} -> {tiers[1]}{target}" for source, target in pairs)
                words.append(f"job {job}: {direction} {copies}")
        flush = sorted(metadata.jobs_to_flush or ())
        return words + ([f"flush {', '.join(map(str, flush))}"] if flush else [])

    # What is seen.

    def books(self) -> Books:
        engine = self.engine
        for number, request in engine.requests.items():
            known = request.block_hashes
            for index in range(len(known)):
                start = index * TOKENS_PER_BLOCK
                names = engine.prefixes[number][start : start + TOKENS_PER_BLOCK]
                self.keys.setdefault(bytes(known[index]), tuple(names))
        published, counts = [], [0] * self.scope.host_blocks
        idle = list(private.free_chunks(self.manager))
        for key, chunk, count in private.chunks_of(self.manager):
            counts[chunk] += 1 if count < 0 else count
            if count >= 0:
                published.append((chunk, self.keys[bytes(get_offload_block_hash(key))]))
            if not count:
                idle.append(chunk)
        return Books(
            device=private.pool(engine.scheduler.kv_cache_manager.block_pool),
            host=Pool(tuple(counts), tuple(idle)),
            tables=tuple(engine.holders()),
            unfinished=engine.unfinished(),
            busy=engine.scheduler.has_requests(),
            published=tuple(published),
        )


def copied_metadata(metadata: Any) -> Any:
    """As every worker process gets its own: vLLM's worker takes jobs out of it."""
    return replace(metadata, load_jobs=dict(metadata.load_jobs), store_jobs=dict(metadata.store_jobs))
