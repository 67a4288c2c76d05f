"""The target `vllm-offloading`: vLLM's OffloadingConnector with the CPU tier."""

from typing import Any

from kvmodel.setting import Setting
from kvproof.targets.vllm.engine import RELEASE
from kvproof.targets.vllm.release import importing, since
from kvproof.targets.vllm.target import ConnectorTarget, driven_alone

since((0, 25), RELEASE)  # 0.24's workers copy by handlers of another kind

with importing(RELEASE):
    from kvproof.targets.vllm import offloading_copies
    from kvproof.targets.vllm.offloading_copies import OffloadingCopies


class Offloading(ConnectorTarget):
    """The target `vllm-offloading`."""

    disciplines = ("fencing",)
    copies_own_blocks = False
    connector = "RecordingOffloadingConnector"
    alone = driven_alone("OffloadingCopies()", offloading_copies)

    def copies(self, setting: Setting) -> OffloadingCopies:
        return OffloadingCopies()

    def jobs_in_words(self, metadata: Any) -> list[str]:
        words = []
        for direction, jobs, tiers in (("store", metadata.store_jobs, "dh"), ("load", metadata.load_jobs, "hd")):
            for job, transfer in jobs.items():
                pairs = zip(transfer.src_spec.block_ids, transfer.dst_spec.block_ids, strict=True)
                copies = ", ".join(f"{tiers[0]}{source} -> {tiers[1]}{target}" for source, target in pairs)
                words.append(f"job {job}: {direction} {copies}")
        flush = sorted(metadata.jobs_to_flush or ())
        return words + ([f"flush {', '.join(map(str, flush))}"] if flush else [])
