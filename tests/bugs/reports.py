"""The public reports that bugs of the bank are taken from."""

from collections.abc import Mapping
from typing import NamedTuple


class Report(NamedTuple):
    """An issue, a pull request or a review thread that says what went wrong in an engine.

    engine   whose bug it is
    date     of the report or of its fix, as its page says, ISO 8601 (some to the month)
    same_as  link of another report of the same bug, which is counted instead; empty: this one is counted
    """

    link: str
    engine: str
    date: str
    same_as: str = ""

    @property
    def bug(self) -> str:
        """The link under which the bug is counted: an issue and its fix are one."""
        return self.same_as or self.link


_VLLM = "https://github.com/vllm-project/vllm/"
_SGLANG = "https://github.com/sgl-project/sglang/"
_LMCACHE = "https://github.com/LMCache/LMCache/"

_REPORTS = (
    Report(_VLLM + "issues/36052", "vLLM", "2026-03-04"),
    Report(_VLLM + "issues/39732", "vLLM", "2026-04"),
    Report(_VLLM + "issues/42571", "vLLM", "2026-05-14"),
    Report(_VLLM + "issues/42761", "vLLM", "2026-05-15", same_as=_VLLM + "pull/42959"),
    Report(_VLLM + "issues/45387", "vLLM", "2026-06-12"),
    Report(_VLLM + "issues/45388", "vLLM", "2026-06-12"),
    Report(_VLLM + "issues/45497", "vLLM", "2026-06"),
    Report(_VLLM + "issues/46283", "vLLM", "2026-06-21"),
    Report(_VLLM + "issues/47234", "vLLM", "2026-06"),
    Report(_VLLM + "issues/47282", "vLLM", "2026-07-01"),
    Report(_VLLM + "issues/48616", "vLLM", "2026-07-14"),
    Report(_VLLM + "issues/48959", "vLLM", "2026-07-17"),
    Report(_VLLM + "issues/49118", "vLLM", "2026-07-19"),
    Report(_VLLM + "issues/49125", "vLLM", "2026-07"),
    Report(_VLLM + "issues/51786", "vLLM", "2026-08-11"),
    Report(_VLLM + "issues/53498", "vLLM", "2026-08-24"),
    Report(_VLLM + "issues/54193", "vLLM", "2026-08-28"),
    Report(_VLLM + "issues/57727", "vLLM", "2026-09"),
    Report(_VLLM + "pull/4764", "vLLM", "2024-05"),
    Report(_VLLM + "pull/21048", "vLLM", "2025-07-16"),
    Report(_VLLM + "pull/27170", "vLLM", "2025-11-06"),
    Report(_VLLM + "pull/29870", "vLLM", "2025-12-02"),
    Report(_VLLM + "pull/32255", "vLLM", "2026-01-13"),
    Report(_VLLM + "pull/35092", "vLLM", "2026-02-23"),
    Report(_VLLM + "pull/39726", "vLLM", "2026-04-13"),
    Report(_VLLM + "pull/41180", "vLLM", "2026-04-29"),
    Report(_VLLM + "pull/41289", "vLLM", "2026-04-29"),
    Report(_VLLM + "pull/41956", "vLLM", "2026-05-07"),
    Report(_VLLM + "pull/42289", "vLLM", "2026-05-19"),
    Report(_VLLM + "pull/42903", "vLLM", "2026-05-18", same_as=_VLLM + "issues/42571"),
    Report(_VLLM + "pull/42959", "vLLM", "2026-05-18"),
    Report(_VLLM + "pull/44541", "vLLM", "2026-06-04"),
    Report(_VLLM + "pull/45357", "vLLM", "2026-06-12"),
    Report(_VLLM + "pull/46019", "vLLM", "2026-06-18"),
    Report(_VLLM + "pull/46231", "vLLM", "2026-06-20"),
    Report(_VLLM + "pull/46278", "vLLM", "2026-06-22"),
    Report(_VLLM + "pull/46289", "vLLM", "2026-06-21", same_as=_VLLM + "issues/46283"),
    Report(_VLLM + "pull/48102", "vLLM", "2026-07-09"),
    Report(_VLLM + "pull/48596", "vLLM", "2026-07-14"),
    Report(_VLLM + "pull/49328", "vLLM", "2026-07-20"),
    Report(_VLLM + "pull/49675", "vLLM", "2026-07-24"),
    Report(_VLLM + "pull/50321", "vLLM", "2026-07-29"),
    Report(_VLLM + "pull/54818", "vLLM", "2026-09"),
    Report(_VLLM + "pull/54872", "vLLM", "2026-09-02"),
    Report(_VLLM + "pull/57505", "vLLM", "2026-09-18"),
    Report(_VLLM + "pull/57841", "vLLM", "2026-09-21"),
    Report("https://github.com/vllm-project/vllm-ascend/pull/8743", "vLLM-Ascend", "2026"),
    Report("https://github.com/vllm-project/vllm-ascend/pull/14407", "vLLM-Ascend", "2026-08"),
    Report("https://github.com/ovg-project/kvcached/issues/362", "kvcached", "2026-06-24"),
    Report("https://github.com/llm-d/llm-d-inference-sim/issues/704", "llm-d-inference-sim", "2026-09-14"),
    Report("https://github.com/llm-d/llm-d-inference-sim/issues/705", "llm-d-inference-sim", "2026-09-14"),
    Report(_SGLANG + "issues/5499", "SGLang", "2025-04-17"),
    Report(_SGLANG + "issues/9874", "SGLang", "2025-09-01"),
    Report(_SGLANG + "issues/26792", "SGLang", "2026-06"),
    Report(_SGLANG + "issues/28429", "SGLang", "2026-06"),
    Report(_SGLANG + "pull/27108", "SGLang", "2026-06-03"),
    Report(_SGLANG + "pull/27444", "SGLang", "2026-06-06"),
    Report(_SGLANG + "pull/28374", "SGLang", "2026-06-16"),
    Report(_SGLANG + "pull/28468", "SGLang", "2026-06-16"),
    Report(_SGLANG + "pull/31962", "SGLang", "2026-07-21"),
    Report(_SGLANG + "pull/35049", "SGLang", "2026-08"),
    Report("https://github.com/sgl-project/sglang-jax/pull/994", "SGLang-JAX", "2026-04-28"),
    Report(_LMCACHE + "issues/1034", "LMCache", "2025-07-12"),
    Report(_LMCACHE + "issues/2942", "LMCache", "2026-04-03"),
    Report(_LMCACHE + "issues/5005", "LMCache", "2026-09-07"),
    Report(_LMCACHE + "pull/1075", "LMCache", "2025-07-17"),
    Report(_LMCACHE + "pull/3119", "LMCache", "2026"),
    Report(_LMCACHE + "pull/4866", "LMCache", "2026-09-01"),
    Report(_LMCACHE + "pull/5095", "LMCache", "2026-09-13"),
    Report(_LMCACHE + "pull/5248", "LMCache", "2026-09-22"),
    Report("https://github.com/kvcache-ai/Mooncake/issues/2827", "Mooncake", "2026"),
    Report("https://github.com/kvcache-ai/Mooncake/issues/3030", "Mooncake", "2026-07-21"),
    Report("https://github.com/ai-dynamo/dynamo/issues/3730", "Dynamo", "2025-11"),
    Report("https://github.com/ai-dynamo/dynamo/issues/15079", "Dynamo", "2026-09-22"),
    Report("https://github.com/taco-project/FlexKV/pull/237", "FlexKV", "2026-07-26"),
    Report("https://github.com/NVIDIA/TensorRT-LLM/pull/9056", "TensorRT-LLM", "2025-11-12"),
    Report("https://github.com/NVIDIA/TensorRT-LLM/pull/12667", "TensorRT-LLM", "2026-04-01"),
    Report("https://github.com/NVIDIA/TensorRT-LLM/pull/15272", "TensorRT-LLM", "2026-06-11"),
    Report("https://github.com/NVIDIA/Megatron-LM/pull/5822", "Megatron-LM", "2026-07-17"),
    Report("https://github.com/InternLM/lmdeploy/issues/4917", "LMDeploy", "2026-08-29"),
)

REPORTS: Mapping[str, Report] = {report.link: report for report in _REPORTS}
