"""What recording costs a live vLLM: CPU time of a scheduler step, recorded and not recorded, side by side.

.venv-vllm/bin/python -m bench.record_vllm [STEPS]     (default 2000; of each connector; `make vllm` sets it up)

Two of vLLM's own schedulers serve the same requests step by step in turn, and one has the recording connector. A step
is `schedule` and `update_from_output`, on one thread (CPU time). The median is taken of what the recorded one took more
in the same step. Batches are of four requests, which is little work for a scheduler.
"""

import copy
import sys
import tempfile
import time
from operator import sub
from pathlib import Path
from statistics import median
from typing import Any

from tests.vllm import by_hand
from vllm.v1.simple_kv_offload.metadata import SimpleCPUOffloadWorkerMetadata


class Served:
    """One scheduler, and the requests that come to it."""

    def __init__(self, connector: str, log: Path | None) -> None:
        config, layout = by_hand.configured(connector, 512, False, 8)
        if log is not None:
            config = copy.copy(config)
            config.kv_transfer_config = copy.deepcopy(config.kv_transfer_config)
            transfer = config.kv_transfer_config
            transfer.kv_connector = f"Recorded{connector}"
            transfer.kv_connector_module_path = "kvproof.targets.vllm.recorder"
            transfer.kv_connector_extra_config["kvproof_log"] = str(log)
        self.hand = by_hand.ByHand.__new__(by_hand.ByHand)
        self.hand.scheduler = by_hand.Scheduler(
            vllm_config=config,
            kv_cache_config=layout,
            structured_output_manager=by_hand.StructuredOutputManager(config),
            block_size=by_hand.TOKENS,
            log_stats=False,
        )
        self.submitted = 0
        self.stores: list[int] = []

    def step(self) -> float:
        """Seconds of CPU that vLLM's scheduler took."""
        while len(self.hand.scheduler.requests) < 4:
            prompt = [self.submitted % 400, *range(1, 8)]
            self.hand.submit(str(self.submitted), prompt, output=16)
            self.submitted += 1
        began = time.thread_time()
        scheduled = self.hand.schedule()
        took = time.thread_time() - began
        told = self._report(scheduled.kv_connector_metadata)
        tokens = dict.fromkeys(scheduled.num_scheduled_tokens, 7)
        prompts = {new.req_id: 8 for new in scheduled.scheduled_new_reqs}
        done = {name: token for name, token in tokens.items() if self._computed(name) >= prompts.get(name, 8)}
        began = time.thread_time()
        self.hand.output(scheduled, done, told)
        return took + time.thread_time() - began

    def _computed(self, name: str) -> int:
        return int(self.hand.scheduler.requests[name].num_computed_tokens)

    def _report(self, metadata: Any) -> Any:
        """What the worker says of the copies of this step: all are over. (Host blocks are plenty, so none is loaded
        that was not stored long ago.)"""
        if hasattr(metadata, "store_jobs"):
            jobs = [*metadata.store_jobs, *metadata.load_jobs]
            return by_hand.copied(*jobs) if jobs else None
        if not metadata.store_gpu_blocks:
            return None
        return SimpleCPUOffloadWorkerMetadata(completed_store_events={metadata.store_event: 1})


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    for connector in ("OffloadingConnector", "SimpleCPUOffloadConnector"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "engine.log"
            plain, recorded = Served(connector, None), Served(connector, path)
            took: dict[Served, list[float]] = {plain: [], recorded: []}
            for step in range(steps):
                for served in (plain, recorded) if step % 2 else (recorded, plain):
                    took[served].append(served.step())
            recorded.hand.scheduler.connector.recorder.close()
            lines, size = len(path.read_bytes().splitlines()), path.stat().st_size
        off, more = median(took[plain]), median(map(sub, took[recorded], took[plain]))
        print(
            f"{connector}: {steps:,} steps, {off * 1e6:.0f} us of CPU each, recorded {more * 1e6:+.0f} us: "
            f"{100 * more / off:+.1f}%; {lines:,} lines, {size / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
