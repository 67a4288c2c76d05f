"""Record a live vLLM: its own connectors, which write down what the scheduler is told through their public hooks.

    --kv-transfer-config '{"kv_connector": "RecordedOffloadingConnector", "kv_role": "kv_both",
        "kv_connector_module_path": "kvproof.targets.vllm.recorder",
        "kv_connector_extra_config": {"kvproof_log": "/tmp/engine.log", "cpu_bytes_to_use": 1000000000}}'

Without `kvproof_log` nothing is recorded. The connectors change nothing of what vLLM does. What they write holds no
tokens: blocks go by the hashes that vLLM has of them. vLLM makes its own choices, so `kvproof validate` holds such a
log to what every engine owes (kvproof.obligations.logged).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kvmodel.contract import Contract, Discipline
from kvproof.log.entry import JSON
from kvproof.log.noting import Noting
from kvproof.log.writing import LogFile, header
from kvproof.targets.vllm.release import importing, installed

RELEASE = installed()  # before vllm is imported

with importing(RELEASE):
    from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import OffloadingConnector
    from vllm.distributed.kv_transfer.kv_connector.v1.simple_cpu_offload_connector import SimpleCPUOffloadConnector

OPTION = "kvproof_log"
"""Of `kv_connector_extra_config`: the file to write, which must not be there."""

Copies = list[tuple[int, str, list[int], list[int]]]
"""Of each job its number, `store` or `load`, the blocks that it reads and those that it writes."""


class Step(NamedTuple):
    """What a scheduling call has launched, as vLLM says it to its workers.

    counts  tokens of each request, in the order of scheduling; tables: device blocks of those that begin, or begin
            anew, which workers may add to
    begun   the first token of each new request; cached: what is said of all others
    flush   jobs, or `all`
    """

    counts: Mapping[str, int]
    tables: dict[str, list[int]]
    begun: dict[str, int]
    cached: Any
    copies: Copies
    flush: str | list[int]


class Met(NamedTuple):
    """A request that the connector was asked about. Its hashes are read when lines are made: there are only more."""

    name: str
    hashes: Sequence[bytes]


class Recorder(Noting):
    """The log of one vLLM scheduler."""

    def __init__(self, path: Path, config: Any, cache: Any, connector: str, discipline: Discipline) -> None:
        """Begins the file. Raises OSError, and FileExistsError if the file is there."""
        parallel, scheduling = config.parallel_config, config.scheduler_config
        self.workers = int(parallel.world_size)
        depth = 2 if scheduling.async_scheduling or parallel.pipeline_parallel_size > 1 else 1
        sizes: JSON = {"device_blocks": int(cache.num_blocks), "host_blocks": 1, "workers": self.workers}
        about = header(f"vllm {RELEASE}, {connector}", Contract(discipline, depth=depth), sizes)
        about |= {"runs": "unrecorded", "tokens_per_block": int(config.cache_config.block_size)}
        super().__init__(LogFile(path, about))
        self._met: dict[str, Met] = {}
        self._keyed: dict[str, int] = {}
        self._counts: dict[int, int] = {}

    def step(self, scheduled: Any, copies: Copies, flush: str | list[int]) -> None:
        """Note a launch."""
        tables: dict[str, list[int]] = {}
        begun: dict[str, int] = {}
        for new in scheduled.scheduled_new_reqs:
            tables[new.req_id] = list(new.block_ids[0])
            begun[new.req_id] = new.num_computed_tokens
        cached = scheduled.scheduled_cached_reqs
        if cached.resumed_req_ids:
            for name, blocks in zip(cached.req_ids, cached.new_block_ids, strict=True):
                if name in cached.resumed_req_ids:
                    tables[name] = list(blocks[0])
        self.note(Step(scheduled.num_scheduled_tokens, tables, begun, cached, copies, flush))

    def ended(self, name: str) -> None:
        self.note({"do": {"verb": "end", "request": name}})

    def completed(self, counts: Mapping[int, int]) -> None:
        """So many more workers have reported each of these jobs: those that all have reported are over."""
        over: list[int] = []
        for job, count in counts.items():
            self._counts[job] = self._counts.get(job, 0) + count
            if self._counts[job] >= self.workers:
                del self._counts[job]
                over.append(job)
        if over:
            self.note({"do": {"verb": "report"}, "jobs": over})

    def _lines(self, noted: Any) -> list[JSON]:
        if isinstance(noted, Met):
            self._met[noted.name] = noted
            return []
        if isinstance(noted, Step):
            return [self._step(noted)]
        if noted["do"]["verb"] == "end":
            self._met.pop(noted["do"]["request"], None)
            self._keyed.pop(noted["do"]["request"], None)
        return [noted]

    def _step(self, step: Step) -> JSON:
        cached = step.cached
        said = {
            name: (start, blocks)
            for name, blocks, start in zip(
                cached.req_ids, cached.new_block_ids, cached.num_computed_tokens, strict=True
            )
        }
        requests: JSON = {}
        for name, count in step.counts.items():
            start, blocks = said[name] if name in said else (step.begun[name], None)
            request: JSON = {"start": start, "count": count}
            if name in step.tables:
                request["table"] = step.tables[name]
            elif blocks is not None:
                request["more"] = list(blocks[0])
            keys = self._new_keys(name)
            requests[name] = request | ({"keys": keys} if keys else {})
        line: JSON = {"do": {"verb": "step"}, "requests": requests}
        if step.copies:
            line["copies"] = [
                [job, direction, [[int(a), int(b)] for a, b in zip(sources, destinations, strict=True)]]
                for job, direction, sources, destinations in step.copies
            ]
        return line | ({"flush": step.flush} if step.flush else {})

    def _new_keys(self, name: str) -> list[str]:
        """Of the blocks that a request has filled since the last line."""
        met = self._met.get(name)
        hashes = met.hashes[self._keyed.get(name, 0) :] if met is not None else []
        if hashes:
            self._keyed[name] = self._keyed.get(name, 0) + len(hashes)
        return [bytes(key).hex()[:32] for key in hashes]


class Recorded:
    """The hooks of a connector, told to a recorder as well. recorder: None, unless the option is given."""

    recorder: Recorder | None = None
    discipline: Discipline

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any, *others: Any, **named: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config, *others, **named)  # type: ignore[call-arg]
        path = vllm_config.kv_transfer_config.kv_connector_extra_config.get(OPTION)
        if path is not None and role is KVConnectorRole.SCHEDULER:
            name = type(self).__name__.removeprefix("Recorded")
            self.recorder = Recorder(Path(path), vllm_config, kv_cache_config, name, self.discipline)
            if len(kv_cache_config.kv_cache_groups) > 1:
                self.recorder.give_up("it has several groups of KV caches, and logs are of one")
                return
            self.recorder.write_beside()

    @property
    def _recording(self) -> Recorder | None:
        return self.recorder if self.recorder is not None and self.recorder.stopped is None else None

    def get_num_new_matched_tokens(self, request: Any, *others: Any) -> Any:
        if self._recording is not None:
            self._recording.note(Met(request.request_id, request.block_hashes))
        return super().get_num_new_matched_tokens(request, *others)  # type: ignore[misc]

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        metadata = super().build_connector_meta(scheduler_output)  # type: ignore[misc]
        if self._recording is not None:
            self._recording.step(scheduler_output, self.copies_of(metadata), self.flushed_by(metadata))
        return metadata

    def update_connector_output(self, connector_output: Any) -> None:
        if self._recording is not None:
            self._recording.completed(self.completed_in(connector_output))
        super().update_connector_output(connector_output)  # type: ignore[misc]

    def request_finished(self, request: Any, *others: Any) -> Any:
        if self._recording is not None:
            self._recording.ended(request.request_id)
        return super().request_finished(request, *others)  # type: ignore[misc]

    def request_finished_all_groups(self, request: Any, *others: Any) -> Any:
        if self._recording is not None:
            self._recording.ended(request.request_id)
        return super().request_finished_all_groups(request, *others)  # type: ignore[misc]

    def reset_cache(self) -> bool | None:
        done: bool | None = super().reset_cache()  # type: ignore[misc]
        if self._recording is not None:
            self._recording.note({"do": {"verb": "reset"}, "answered": bool(done)})
        return done

    def shutdown(self) -> None:
        if self.recorder is not None:
            self.recorder.close()
        super().shutdown()  # type: ignore[misc]

    def copies_of(self, metadata: Any) -> Copies:
        raise NotImplementedError

    def flushed_by(self, metadata: Any) -> str | list[int]:
        raise NotImplementedError

    def completed_in(self, output: Any) -> dict[int, int]:
        """By job, how many workers report it now."""
        raise NotImplementedError


class RecordedOffloadingConnector(Recorded, OffloadingConnector):
    """OffloadingConnector, recorded."""

    discipline = "fencing"

    def copies_of(self, metadata: Any) -> Copies:
        return [
            (job, direction, list(transfer.src_spec.block_ids), list(transfer.dst_spec.block_ids))
            for direction, jobs in (("load", metadata.load_jobs), ("store", metadata.store_jobs))
            for job, transfer in jobs.items()
        ]

    def flushed_by(self, metadata: Any) -> list[int]:
        return sorted(metadata.jobs_to_flush or ())

    def completed_in(self, output: Any) -> dict[int, int]:
        report = output.kv_connector_worker_meta
        return dict(report.completed_jobs) if report is not None else {}


class RecordedSimpleCPUOffloadConnector(Recorded, SimpleCPUOffloadConnector):
    """SimpleCPUOffloadConnector, recorded. Its stores and loads are counted apart: stores have even numbers here."""

    discipline = "pinning"

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any, *others: Any, **named: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config, *others, **named)
        self._loading: dict[str, int] = {}
        self._awaiting: dict[int, set[str]] = {}

    def copies_of(self, metadata: Any) -> Copies:
        copies: Copies = []
        if metadata.load_gpu_blocks:
            job = 2 * metadata.load_event + 1
            copies.append((job, "load", list(metadata.load_cpu_blocks), list(metadata.load_gpu_blocks)))
            loaded = metadata.load_event_to_reqs.get(metadata.load_event, ())
            self._awaiting[job] = set(loaded)
            self._loading |= dict.fromkeys(loaded, job)
        if metadata.store_gpu_blocks:
            sources, destinations = list(metadata.store_gpu_blocks), list(metadata.store_cpu_blocks)
            copies.append((2 * metadata.store_event, "store", sources, destinations))
        return copies

    def flushed_by(self, metadata: Any) -> str | list[int]:
        return "all" if metadata.need_flush else []

    def completed_in(self, output: Any) -> dict[int, int]:
        """A load is over when every request is received that it is for; that all workers have said so vLLM knows."""
        assert self.recorder is not None
        report = output.kv_connector_worker_meta
        stores = report.completed_store_events if report is not None else {}
        counts = {2 * event: int(count) for event, count in stores.items()}
        for name in _known(output.finished_recving, self._loading):
            job = self._loading.pop(name)
            self._awaiting[job].discard(name)
            if not self._awaiting[job]:
                del self._awaiting[job]
                counts[job] = self.recorder.workers
        return counts


def _known(names: Iterable[str] | None, loading: Mapping[str, int]) -> list[str]:
    return [name for name in names or () if name in loading]
